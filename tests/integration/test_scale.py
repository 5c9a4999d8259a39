"""The scenarios of the load test run: short ones, of which nothing fails."""
import os
import re
import subprocess
import sys

import daemon


def test_scenarios_of_the_load_test(tmp_path):
    page = tmp_path / 'scale.html'
    done = subprocess.run([sys.executable, os.path.join(daemon.ROOT, 'loadtest', 'scale'), '--build', daemon.BUILD, '--small', '--only',
                           'hot,scale', '--seconds', '1', '--rate', '30', '--out', str(page)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    text = done.stdout.decode()
    assert done.returncode == 0, text[-3000:]
    rows = re.findall(r'^all +(\d+) +(\d+) ', text, re.M)
    assert len(rows) == 3 and all(int(n) > 10 and int(errors) == 0 for n, errors in rows), text
    assert page.read_text().count('<svg') == 12
