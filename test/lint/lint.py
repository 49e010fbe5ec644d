#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of docs/architecture.md and style that a machine can check.

usage: lint.py CHECK [BUILD_FOLDER]
Each check prints what it looked at, and one line per fault as file:line: message; exit 1 if any.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))

# folder -> prefixes of what it may include; the table of docs/architecture.md. The longest matching folder counts.
BASE_PURE = {
    "base/attr.h", "base/banned.h", "base/err.h", "base/arena.h", "base/str.h", "base/buf.h", "base/vec.h",
    "base/map.h", "base/heap.h", "base/bits.h", "base/intern.h", "base/num.h", "base/time.h", "base/rng.h",
    "base/cron.h", "base/backoff.h", "base/limit.h", "base/json.h", "base/yml.h", "base/crypto.h", "base/schema.h", "base/file.h",
}
PURE = ["kube/api/"] + sorted(BASE_PURE)
ALLOWED = {
    "base/": ["base/"],
    "kube/api/": PURE,
    "kube/client/": ["kube/client/", "kube/api/", "base/"],
    "kube/sim/": ["kube/sim/", "kube/api/", "base/"],
    "cloud/": ["cloud/cloud.h", "cloud/catalog.h", "cloud/auth/", "cloud/", "kube/api/", "base/"],
    "cloud/auth/": ["cloud/auth/", "base/"],
    "cloud/sim/": ["cloud/sim/", "cloud/cloud.h", "cloud/catalog.h", "cloud/auth/", "kube/api/", "base/"],
    "provisioner/model/": ["provisioner/model/", "cloud/catalog.h"] + PURE,
    "provisioner/solve/": ["provisioner/solve/", "provisioner/model/", "cloud/catalog.h"] + PURE,
    "provisioner/disrupt/": ["provisioner/disrupt/", "provisioner/solve/", "provisioner/model/", "cloud/catalog.h"] + PURE,
    "provisioner/control/": ["provisioner/", "kube/client/", "kube/api/", "cloud/cloud.h", "cloud/catalog.h", "base/"],
    "provisioner/observe/": ["provisioner/", "kube/client/", "kube/api/", "cloud/cloud.h", "cloud/catalog.h", "base/"],
    "scalers/": ["scalers/", "kube/client/", "kube/api/", "cloud/auth/", "base/"],
    "cmd/": [""],
    "test/": [""],
}
# Which file alone (or files of one beginning) may include a library's header.
SOLE = {
    "yajl/": "base/json.c", "yaml.h": "base/yml.c", "curl/": "base/http_curl", "microhttpd.h": "base/serve.c",
    "expat.h": "base/xml.c", "hiredis/": "scalers/resp.c", "coin/": "provisioner/solve/columns.c",
}
# Archives whose undefined symbols must be pure, and what of libc they may use.
PURE_ARCHIVES = ["kube_api", "model", "solve", "disrupt", "scalers_decide"]
PURE_SYMBOLS = re.compile(
    r"^(malloc|calloc|realloc|free|malloc_usable_size|abort|__assert_fail|qsort|qsort_r|bsearch|abs|labs|llabs|"
    r"mem\w+|str(len|cmp|ncmp|chr|rchr|str|spn|cspn|nlen|casecmp|ncasecmp)|snprintf|vsnprintf|"
    r"explicit_bzero|__explicit_bzero_chk|__\w+_chk|__stack_chk_fail|"
    r"floor|ceil|round|fabs|pow|exp|log|sqrt|fmin|fmax|ldexp|lround|llround|isnan|"
    r"__(asan|ubsan|tsan|sanitizer|gcov|llvm)\w*|__udivti3|__divti3|__umodti3|__modti3|__muloti4|__popcountdi2|"
    r"_GLOBAL_OFFSET_TABLE_|__ctype_\w+|stderr|stdout)$")


def tracked(*suffixes):
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(f for f in out if f.endswith(suffixes) and os.path.exists(os.path.join(ROOT, f)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def includes(path):
    for number, line in enumerate(read(path).split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
        if m:
            yield number, m.group(1), m.group(2)


def check_arrows(_):
    faults, n = [], 0
    for f in tracked(".c", ".h"):
        folder = max((d for d in ALLOWED if f.startswith(d)), key=len, default=None)
        if folder is None:
            faults.append(f"{f}:1: lies in no folder of the architecture")
            continue
        for line, kind, name in includes(f):
            n += 1
            for prefix, owner in SOLE.items():
                if kind == "<" and name.startswith(prefix) and not f.startswith(owner) and not f.startswith("test/"):
                    faults.append(f"{f}:{line}: only {owner} may include <{name}>")
            if kind != '"':
                continue
            if "/" not in name or not os.path.exists(os.path.join(ROOT, name)):
                faults.append(f"{f}:{line}: include \"{name}\" is not a path from the root")
            elif name.startswith("test/") and not f.startswith("test/"):
                faults.append(f"{f}:{line}: nothing includes test/")
            elif not any(name == a or (a == "" or a.endswith("/")) and name.startswith(a) for a in ALLOWED[folder]):
                faults.append(f"{f}:{line}: {folder} may not include {name}")
    return faults, f"{n} includes follow the arrows"


def check_cycles(_):
    graph = {f: [name for _, kind, name in includes(f) if kind == '"'] for f in tracked(".h")}
    faults, state, stack = [], {}, []

    def visit(f):
        state[f] = 1
        stack.append(f)
        for g in graph.get(f, []):
            if state.get(g) == 1:
                faults.append(f"{f}:1: include cycle: " + " -> ".join(stack[stack.index(g):] + [g]))
            elif g not in state:
                visit(g)
        stack.pop()
        state[f] = 2

    for f in graph:
        if f not in state:
            visit(f)
    return faults, f"{len(graph)} headers without a cycle"


def archives(build):
    found = {}
    for folder, _, files in os.walk(build):
        for name in files:
            if name.startswith("lib") and name.endswith(".a"):
                found[name[3:-2]] = os.path.join(folder, name)
    return found


def nm(path, *flags):
    out = subprocess.run(["nm", *flags, path], capture_output=True, text=True, check=True).stdout
    return [line.split() for line in out.split("\n") if line.strip() and not line.endswith(":")]


def check_purity(build):
    """An undefined symbol of a pure archive is another pure archive's, or on the short list."""
    found, faults, n = archives(build), [], 0
    defined = set()
    for a in ["base_pure", "cloud_catalog"] + PURE_ARCHIVES:
        if a in found:
            defined |= {w[-1] for w in nm(found[a], "--defined-only")}
    for a in PURE_ARCHIVES:
        if a not in found:
            continue
        for word in nm(found[a], "-u"):
            n += 1
            if word[-1] not in defined and not PURE_SYMBOLS.match(word[-1]):
                faults.append(f"{a}: uses {word[-1]}: no clock, no I/O, no randomness in the pure core")
    return sorted(set(faults)), f"{n} undefined symbols are pure"


FUNCTION = re.compile(r"^[A-Za-z_][^;={}#/]*\([^;]*\)\s*(?:PRINTF_LIKE\([^)]*\)\s*)?$")


def functions(path):
    """(name, first line, length) of each function: a line that starts in column 0 before a lone '{'."""
    lines = read(path).split("\n")
    i = 0
    while i < len(lines):
        if lines[i] == "{":
            start, head = i, i - 1
            while head > 0 and lines[head] and not lines[head].startswith(("}", "#", "/*", " */", "//")):
                head -= 1
            text = " ".join(lines[head + 1:i])
            end = start
            while end < len(lines) and lines[end] != "}":
                end += 1
            m = re.search(r"(\w+)\s*\(", text)
            if m:
                yield m.group(1), head + 2, end - head - 1
            i = end
        i += 1


def check_lengths(_):
    all_functions, faults = [], []
    for f in tracked(".c", ".h"):
        n = read(f).count("\n")
        if n > 1000:
            faults.append(f"{f}:1: {n} lines; 1,000 is the most")
        for name, line, length in functions(f):
            all_functions.append((length, f, line, name))
            if length > 120:
                faults.append(f"{f}:{line}: {name} has {length} lines; 120 is the most")
    all_functions.sort(reverse=True)
    for length, f, line, name in all_functions[:10]:
        print(f"  {length:4} {f}:{line} {name}")
    lengths = sorted(a[0] for a in all_functions)
    median = lengths[len(lengths) // 2] if lengths else 0
    p95 = lengths[len(lengths) * 95 // 100] if lengths else 0
    return faults, f"{len(lengths)} functions, median {median} lines, 95th percentile {p95}"


def check_words(_):
    """Licence headers, markers, and paths of one machine."""
    faults, n = [], 0
    for f in tracked(".c", ".h"):
        n += 1
        text = read(f)
        if not text.startswith("/* SPDX-License-Identifier: Apache-2.0\n * Copyright The weft authors. */\n"):
            faults.append(f"{f}:1: no licence header")
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                faults.append(f"{f}:{number}: only NEEDSWORK: with a description marks unfinished work")
            if "base/banned.h" in line and f not in ("base/attr.h", "base/banned.h"):
                faults.append(f"{f}:{number}: base/attr.h brings banned.h")
    for f in tracked(""):
        if f.endswith((".png", ".svg")) or f == "test/lint/lint.py":
            continue
        try:
            text = read(f)
        except (UnicodeDecodeError, IsADirectoryError):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if re.search(r"(^|[\s\"'=(])/(work|home|root)/[a-z]", line):
                faults.append(f"{f}:{number}: a path of one machine")
    return faults, f"{n} sources have licence headers and no markers"


def check_format(_):
    tool = next((t for t in ("clang-format-14", "clang-format") if subprocess.run(
        ["sh", "-c", f"command -v {t}"], capture_output=True).returncode == 0), None)
    if tool is None:
        print("SKIPPED: clang-format is not installed")
        return [], "format not checked"
    files = tracked(".c", ".h")
    out = subprocess.run([tool, "--dry-run", "--ferror-limit=1", *files], cwd=ROOT, capture_output=True, text=True).stderr
    faults = [line for line in out.split("\n") if "warning:" in line or "error:" in line]
    return faults, f"{len(files)} files are formatted"


def check_links(_):
    """Relative links and named files of the documents exist."""
    faults, n = [], 0
    for f in tracked(".md"):
        for number, line in enumerate(read(f).split("\n"), 1):
            for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", line):
                if "://" in target:
                    continue
                n += 1
                if not os.path.exists(os.path.join(ROOT, os.path.dirname(f), target)):
                    faults.append(f"{f}:{number}: there is no {target}")
    return faults, f"{n} links lead somewhere"


CHECKS = {name[6:]: fn for name, fn in globals().items() if name.startswith("check_")}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKS:
        sys.exit("usage: lint.py " + "|".join(CHECKS) + " [BUILD_FOLDER]")
    faults, summary = CHECKS[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
    for fault in faults:
        print(fault)
    print(f"lint {sys.argv[1]}: {summary}" if not faults else f"lint {sys.argv[1]}: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
