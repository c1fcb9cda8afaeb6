// Kernels from C++: y = s x, with memory that frees itself and statuses as exceptions.
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "example_kernels.h"

namespace {

void check(int32_t status) {
  if (status != TIRX_OK) throw std::runtime_error(tirx_last_error());
}

class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<float>& values) : extent_(static_cast<int64_t>(values.size())) {
    check(tirx_alloc(0, bytes(), &data_));
    check(tirx_copy_to_device(0, data_, values.data(), bytes()));
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { tirx_free(0, data_); }

  DLTensor tensor() { return DLTensor{data_, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &extent_, nullptr, 0}; }

  std::vector<float> values() const {
    std::vector<float> out(static_cast<size_t>(extent_));
    check(tirx_copy_to_host(0, out.data(), data_, bytes()));
    return out;
  }

 private:
  size_t bytes() const { return static_cast<size_t>(extent_) * sizeof(float); }
  int64_t extent_;
  void* data_ = nullptr;
};

}  // namespace

int main() try {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  DeviceVector in(x), out(std::vector<float>(x.size()));
  DLTensor a = in.tensor(), b = out.tensor();
  check(scal(&a, &b, 3.0f, nullptr));
  const std::vector<float> y = out.values();
  for (size_t i = 0; i < x.size(); ++i) {
    if (y[i] != 3.0f * x[i]) throw std::runtime_error("wrong value");
  }
  std::cout << "y[1] = " << y[1] << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
