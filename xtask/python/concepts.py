"""Counts of a checkout for docs/developing/concepts.md: concepts.py CHECKOUT.

Lines are those of tracked Rust files, without tests that are files of their own. Names are counted in code without inner modules of
tests.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

CHECKOUT = Path(sys.argv[1])
# The crates of the compiler and of the simulator, in which calls have operands by name.
COMPILER = re.compile(r"(tirx-core/\w+|tirx-sim|tirx-sim/machine|tirx-services|tirx-build)/src/")
INTERPRETER = re.compile(r"tirx-core/script/src/(eval|lang)/")
INNER_TESTS = re.compile(r"\n#\[cfg\((?:all\()?test\b.*\n(?:#.*\n)*(?:pub(?:\(\w+\))? )?mod tests \{")


def output(*command):
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout


def is_test(file, crate):
    parts = Path(file).relative_to(crate).parts
    return crate.split("/")[0] == "tests" or parts[0] in ("tests", "benches", "examples") or parts[-1].endswith(("tests.rs", "_test.rs"))


def count(pattern, texts):
    return sum(len(re.findall(pattern, text)) for text in texts)


files = output("git", "ls-files").split("\n")
crates = sorted((str(Path(f).parent) for f in files if f.endswith("Cargo.toml") and f != "Cargo.toml"), key=len, reverse=True)
lines, tests, code = Counter(), Counter(), {}
for file in (f for f in files if f.endswith(".rs")):
    crate = next(c for c in crates if file.startswith(c + "/"))
    text = (CHECKOUT / file).read_text()
    if is_test(file, crate):
        tests[crate] += text.count("\n")
    else:
        lines[crate] += text.count("\n")
        code[file] = INNER_TESTS.split(text)[0]

for crate in sorted(lines | tests):
    print(f"{crate:30} {lines[crate]:7} lines, {tests[crate]:6} of tests")
print(f"{'total':30} {lines.total():7} lines, {tests.total():6} of tests")
print("functions `of`:", count(r"\bfn of\b", code.values()))
print("constants MOST_…:", count(r"\bconst MOST_", code.values()))
for name in ("Place", "Call", "Kind", "Launch", "Form"):
    print(f"types {name}:", count(rf"\b(?:struct|enum|type|trait) {name}\b", code.values()))
compiler = [text for file, text in code.items() if COMPILER.match(file)]
print("operands read by a name:", count(r'\.(?:get|text|int|flag|list|number)\(\s*"[A-Za-z_]\w*"', compiler))
interpreter = [text for file, text in code.items() if INTERPRETER.match(file)]
print("fields of the interpreter swapped:", count(r"mem::(?:swap|replace|take)\(\s*&mut (?:self|interp)", interpreter))
packages = json.loads(output("cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"))["packages"]
executables = Counter(p["name"] for p in packages for target in p["targets"] if "test" in target["kind"])
print("executables of tests:", executables.total(), dict(executables))
print(".unwrap():", count(r"\n(?!\s*//)[^\n]*\.unwrap\(\)", code.values()))
