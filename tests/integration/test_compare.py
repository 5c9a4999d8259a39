"""The short form of the benchmark runs from start to end and finds nothing broken."""
import os
import subprocess
import sys
import time

import daemon


def test_the_short_benchmark(tmp_path):
    began = time.monotonic()
    done = subprocess.run([sys.executable, os.path.join(daemon.ROOT, 'loadtest', 'compare'), '--short', '--build', daemon.BUILD,
                           '--out', str(tmp_path / 'result.md')], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180,
                          check=False)
    text = done.stdout.decode()
    assert done.returncode == 0, text + done.stderr.decode()[-2000:]
    for figure in ('start to first answer', 'trace_viewer@, CPU', 'our window, new, 64 clients: rate', 'RSS after run 3'):
        row = [line for line in text.splitlines() if line.startswith('| ' + figure)]
        assert row and '–' not in row[0].split('|')[2], (figure, text)
    assert (tmp_path / 'result.md').read_text() in text
    print(text)
    assert time.monotonic() - began < 120
