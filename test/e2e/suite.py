# SPDX-License-Identifier: Apache-2.0
"""Runs the end-to-end tests: every test_*.py, every function test_* in it, one control plane a file.

usage: suite.py [NAME…]   (names of files or functions)
A test whose peer is missing is SKIPPED with the reason; with WEFT_REQUIRE_ALL=1 that is a failure.
"""
import glob
import importlib
import os
import shutil
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import plane  # noqa: E402


def run_file(path, wanted):
    module = importlib.import_module(os.path.basename(path)[:-3])
    tests = [(n, f) for n, f in vars(module).items() if n.startswith("test_") and callable(f)]
    if wanted and module.__name__ not in wanted:
        tests = [t for t in tests if t[0] in wanted]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in tests:
        folder = tempfile.mkdtemp(prefix="weft-e2e-")
        context, began = None, time.monotonic()
        try:
            context = module.setup(folder)
            test(context)
            outcome = "passed"
        except plane.Missing as e:
            outcome = "skipped"
            print(f"SKIPPED {module.__name__}.{name}: {e}")
        except BaseException as e:
            outcome = "failed"
            traceback.print_exc()
            if context is not None and hasattr(module, "explain"):
                module.explain(context)
            if os.environ.get("WEFT_PAUSE"):
                time.sleep(float(os.environ["WEFT_PAUSE"]))
            if isinstance(e, KeyboardInterrupt):
                raise
        finally:
            if context is not None:
                module.teardown(context)
            keep = outcome == "failed" and os.environ.get("WEFT_KEEP")
            if keep:
                print("kept", folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        counts[outcome] += 1
        print(f"{outcome:8} {module.__name__}.{name} ({time.monotonic() - began:.1f} s)", flush=True)
    return counts


def main():
    wanted = set(sys.argv[1:])
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        for key, n in run_file(path, wanted).items():
            total[key] += n
    print(f"end to end: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    if total["failed"] or (total["skipped"] and os.environ.get("WEFT_REQUIRE_ALL") == "1"):
        return 1
    return 77 if total["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
