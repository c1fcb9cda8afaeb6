"""Every combination of modifiers that TVM 0.27's table of instructions allows, one a line; or which of the mnemonics on the standard
input it allows.

`python tvm_mnemonics.py`: the entry, its mnemonic, and its operands, between tabs. An operand is `rw:kind:registers:dtypes`.
`python tvm_mnemonics.py --check`: for each line `1` where an entry takes all the tokens, else `0`.

The table needs nothing of TVM, so that the module is loaded by its path: importing TVM takes longer than the work.
"""

import importlib.util
import sys
from pathlib import Path


def load():
    root = Path(importlib.util.find_spec("tvm").origin).parent
    spec = importlib.util.spec_from_file_location("ptx_table", root / "backend/cuda/ptx/table.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["ptx_table"] = module
    spec.loader.exec_module(module)
    return module


def operand(table, slot, count, modifiers):
    dtypes = table.operand_dtypes(slot, modifiers) if slot.kind == "reg" else ()
    return f"{slot.rw}:{slot.kind}:{count}:{','.join(dtypes)}"


def write_all(table):
    for name, entry in table.TABLE.items():
        for tokens in table.variants(entry):
            modifiers = table.mods(entry, tokens)
            rows = table.operand_layout(entry, modifiers)
            operands = [operand(table, slot, n, modifiers) for slot, _, n in rows if n]
            print(name, ".".join([entry.ptx_name, *filter(None, tokens)]), " ".join(operands), sep="\t")


def is_legal(table, families, mnemonic):
    """Fills slots in the order of the words, as a call does; a token may have several words."""
    for entry in families.get(mnemonic.split(".")[0], ()):
        rest = mnemonic.removeprefix(entry.ptx_name)
        if rest == mnemonic or rest[:1] not in ("", "."):
            continue
        filled, words = [""] * len(entry.slots), rest.split(".")[1:]
        while words:
            for count in range(min(len(words), 3), 0, -1):
                token = ".".join(words[:count])
                places = (i for i, s in enumerate(entry.slots) if not filled[i] and token in s.choices)
                place = next(places, None)
                if place is not None:
                    break
            else:
                break
            filled[place], words = token, words[count:]
        complete = not words and all(f or s.optional for f, s in zip(filled, entry.slots))
        if complete and not (entry.check and entry.check(table.mods(entry, filled))):
            return True
    return False


def main():
    table = load()
    if "--check" not in sys.argv:
        write_all(table)
        return
    families = {}
    for entry in table.TABLE.values():
        families.setdefault(entry.ptx_name.split(".")[0], []).append(entry)
    for line in sys.stdin:
        print(int(is_legal(table, families, line.strip())))


main()
