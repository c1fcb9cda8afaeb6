"""Compiles every version of every kernel module in the history of a public library.

    public_history.py CLONE XTASK RESULTS [--since 2026-06]

CLONE is a clone of TIRx-kernels with all its branches, XTASK the executable of `cargo xtask` in release. Each file that has a
list `CONFIGS` and a function `get_kernel` is compiled in its first configuration, once for each content, in the first commit that
has it. RESULTS gets a line for each: the blob, the commit, its date, the path, `ok`, `refused` or `crashed`, and the error. What
RESULTS holds already is not compiled again.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \| (\d+) \|[^|]*\|[^|]*\| (.*) \|$", re.MULTILINE)


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, **options)


def compiled(xtask, folder, modules):
    """Each module's result and error. A crash takes the others of the run with it, so that they are tried alone."""
    said = run(xtask, "public-kernels", folder, *modules, "--first")
    rows = {module: ("ok" if good == total != "0" else "refused", why) for module, total, good, why in ROW.findall(said.stdout)}
    missing = [module for module in modules if module not in rows]
    if missing and len(modules) == 1:
        return {modules[0]: ("crashed", " ".join(said.stderr.split())[-200:])}
    for module in missing:
        rows.update(compiled(xtask, folder, [module]))
    return {module: rows[module] for module in modules}


def main():
    clone, xtask, results = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    since = sys.argv[sys.argv.index("--since") + 1] if "--since" in sys.argv else ""
    lines = results.read_text().splitlines() if results.exists() else []
    seen = {line.split("\t")[0] for line in lines}
    commits = run("git", "-C", clone, "log", "--all", "--date-order", "--reverse", "--format=%H %cs").stdout
    with results.open("a") as out:
        for commit, date in map(str.split, commits.splitlines()):
            if date < since:
                continue
            tree = run("git", "-C", clone, "ls-tree", "-r", commit, "tirx_kernels").stdout
            blobs = {path: meta.split()[2] for meta, path in (line.split("\t") for line in tree.splitlines())}
            new = {path: blob for path, blob in blobs.items() if path.endswith(".py") and blob not in seen}
            seen.update(new.values())
            if not new:
                continue
            with tempfile.TemporaryDirectory() as folder:
                archive = subprocess.run(["git", "-C", clone, "archive", commit, "tirx_kernels"], capture_output=True, check=True)
                subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
                texts = {path: (Path(folder) / path).read_text(errors="replace") for path in new}
                modules = [path for path, text in texts.items() if "\ndef get_kernel(" in text and "\nCONFIGS" in text]
                short = {path.removeprefix("tirx_kernels/"): path for path in modules}
                for module, (result, why) in (compiled(xtask, folder, list(short)) if short else {}).items():
                    line = f"{new[short[module]]}\t{commit}\t{date}\t{module}\t{result}\t{why}"
                    lines.append(line)
                    out.write(line + "\n")
            out.flush()
    print(Counter(line.split("\t")[4] for line in lines))
    for why, count in Counter(line.split("\t")[5].split(" (")[0] for line in lines if "\tok\t" not in line).most_common():
        print(f"{count}\t{why}")


main()
