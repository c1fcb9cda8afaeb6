//! Random floating expressions: finite, unless an argument is not.

use tirx_core::ir::DType;

use super::Generator;
use super::bounds::{Bounds, most};
use super::program::{Expr, pieces};

impl Generator {
    pub(super) fn float(&mut self, dtype: DType, depth: u32) -> Expr {
        let d = depth - 1;
        let cap = most(dtype);
        match self.random.below(18) {
            0..=5 => {
                let (a, b) = self.operands(dtype, d);
                let (x, y) = (a.bounds.magnitude(), b.bounds.magnitude());
                let (op, magnitude) = match self.random.below(3) {
                    0 => (" + ", x + y),
                    1 => (" - ", x + y),
                    _ => (" * ", x * y),
                };
                if magnitude <= cap {
                    return Expr::new(dtype, Bounds::Float(magnitude), pieces!["(", a, op, b, ")"]);
                }
                let small = if cap > 1e5 {
                    Bounds::Float(1000.0)
                } else {
                    Bounds::Float(200.0)
                };
                let (a, b) = (self.same(a, dtype, small), self.same(b, dtype, small));
                Expr::new(dtype, Bounds::Float(40000.0), pieces!["(", a, op, b, ")"])
            }
            6 => {
                let (a, b) = (self.expr(dtype, d), self.positive(dtype, d));
                let bounds = a.bounds;
                Expr::new(dtype, bounds, pieces!["(", a, " / ", b, ")"])
            }
            7 => {
                let (a, b) = self.operands(dtype, d);
                let bounds = Bounds::Float(a.bounds.magnitude().max(b.bounds.magnitude()));
                let name = *self.random.pick(&["T.min(", "T.max("]);
                Expr::new(dtype, bounds, pieces![name, a, ", ", b, ")"])
            }
            8 => {
                let a = self.expr(dtype, d);
                let bounds = a.bounds;
                if self.random.chance(50) {
                    return Expr::new(dtype, bounds, pieces!["(-", a, ")"]);
                }
                let name = *self.random.pick(&["T.fabs(", "T.abs("]);
                Expr::new(dtype, bounds, pieces![name, a, ")"])
            }
            9..=12 => self.math(dtype, d),
            13 | 14 => self.choice(dtype, d),
            _ => {
                let from = self.any_dtype();
                let e = self.expr(from, d);
                self.cast(e, dtype)
            }
        }
    }

    /// A float of at least one.
    fn positive(&mut self, dtype: DType, d: u32) -> Expr {
        let a = self.expr(dtype, d);
        let a = self.fit(a, Bounds::Float(10000.0));
        let magnitude = a.bounds.magnitude() + 1.0;
        let one = self.float_literal(dtype, 1.0);
        Expr::new(
            dtype,
            Bounds::Float(magnitude),
            pieces!["(T.fabs(", a, ") + ", one, ")"],
        )
    }

    fn math(&mut self, dtype: DType, d: u32) -> Expr {
        let of = |magnitude: f64, pieces| Expr::new(dtype, Bounds::Float(magnitude), pieces);
        match self.random.below(9) {
            0..=2 if self.exact => {
                let a = self.positive(dtype, d);
                let magnitude = a.bounds.magnitude();
                of(magnitude, pieces!["T.sqrt(", a, ")"])
            }
            3 | 8 if self.exact => self.expr(dtype, d),
            0 => {
                let name = *self.random.pick(&["T.exp(", "T.exp2("]);
                let a = self.expr(dtype, d);
                let a = self.fit(a, Bounds::Float(8.0));
                of(4000.0, pieces![name, a, ")"])
            }
            1 | 2 => {
                let name = *self
                    .random
                    .pick(&["T.tanh(", "T.sin(", "T.cos(", "T.erf(", "T.atan("]);
                let a = self.expr(dtype, d);
                of(2.0, pieces![name, a, ")"])
            }
            3 => {
                let name = *self
                    .random
                    .pick(&["T.sqrt(", "T.log(", "T.log2(", "T.log10(", "T.rsqrt("]);
                let a = self.positive(dtype, d);
                let magnitude = a.bounds.magnitude();
                of(magnitude, pieces![name, a, ")"])
            }
            4 | 5 => {
                let name =
                    *self
                        .random
                        .pick(&["T.floor(", "T.ceil(", "T.trunc(", "T.round(", "T.nearbyint("]);
                let a = self.expr(dtype, d);
                let a = self.fit(a, Bounds::Float(1e29f64.min(most(dtype) / 2.0)));
                let magnitude = a.bounds.magnitude() + 1.0;
                of(magnitude, pieces![name, a, ")"])
            }
            6 if dtype.is_float() => {
                let (a, b, c) = (self.expr(dtype, d), self.expr(dtype, d), self.expr(dtype, d));
                let small = Bounds::Float(100.0);
                let (a, b, c) = (self.fit(a, small), self.fit(b, small), self.fit(c, small));
                of(10100.0, pieces!["T.fma(", a, ", ", b, ", ", c, ")"])
            }
            7 if dtype.bits >= 32 => {
                let (a, b) = (self.expr(dtype, d), self.positive(dtype, d));
                let magnitude = a.bounds.magnitude().max(4.0);
                let names: &[&str] = match self.exact {
                    true => &["T.copysign(", "T.fmod("],
                    false => &["T.atan2(", "T.copysign(", "T.fmod("],
                };
                let name = *self.random.pick(names);
                of(magnitude, pieces![name, a, ", ", b, ")"])
            }
            8 if dtype.bits >= 32 && dtype.is_float() => {
                let a = self.positive(dtype, d);
                let a = self.fit(a, Bounds::Float(1000.0));
                let e = self.random.pick(&[2.0, 0.5, 3.0, 1.0, -1.0]).to_owned();
                let e = self.float_literal(dtype, e);
                of(2e9, pieces!["T.pow(", a, ", ", e, ")"])
            }
            _ => self.expr(dtype, d),
        }
    }

    /// A float8: mostly a cast from a wider float, in which it is computed.
    pub(super) fn float8(&mut self, dtype: DType, depth: u32) -> Expr {
        let d = depth - 1;
        match self.random.below(6) {
            0 => self.choice(dtype, d),
            1 => {
                let (a, b) = (self.expr(dtype, d), self.expr(dtype, d));
                let small = Bounds::Float(12.0);
                let (a, b) = (self.fit(a, small), self.fit(b, small));
                let (x, y) = (a.bounds.magnitude(), b.bounds.magnitude());
                let (op, magnitude) = match self.random.below(3) {
                    0 => (" + ", x + y),
                    1 => (" - ", x + y),
                    _ => (" * ", x * y),
                };
                let bounds = Bounds::Float((magnitude * 1.25).min(most(dtype)));
                Expr::new(dtype, bounds, pieces!["(", a, op, b, ")"])
            }
            2 => {
                let (a, b) = (self.expr(dtype, d), self.expr(dtype, d));
                let bounds = a.bounds.union(b.bounds);
                let name = *self.random.pick(&["T.min(", "T.max("]);
                Expr::new(dtype, bounds, pieces![name, a, ", ", b, ")"])
            }
            _ => {
                let from = *self
                    .random
                    .pick(&[DType::FLOAT32, DType::FLOAT16, DType::BFLOAT16]);
                let e = self.expr(from, d);
                self.cast(e, dtype)
            }
        }
    }
}
