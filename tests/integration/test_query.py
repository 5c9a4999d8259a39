"""`xprofd query --xprof`: the bytes of XProf's routes without a server, tables, sentences and exit codes,
and nothing from a profile that a terminal would obey. (Reports: test_reports.py.)"""
import json
import os
import pty
import shutil
import subprocess

import daemon
import pytest

TABLES = ['framework_op_stats', 'hlo_stats', 'kernel_stats', 'perf_counters', 'utilization_viewer']
RUN, HOST = 'sample', 'host-0'
NAME = b'flash_attention_bwd'
EVIL = b'ev\x1b[31m\x07\xc2\x9b\xe2\x80\xaexx_bwd'  # colour, bell, C1's CSI, right to left


def query(*words, stdout=subprocess.PIPE):
    """-> (exit code, stdout, stderr), bytes"""
    done = subprocess.run([daemon.XPROFD, 'query', '--xprof', *map(os.fsencode, words)], stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def ok(*words):
    code, out, err = query(*words)
    assert code == 0 and err == b'', (words, code, err)
    return out


def refused(code, *words, say):
    """-> what stderr says"""
    got, out, err = query(*words)
    text = err.decode('utf8')
    assert got == code and out == b'', (words, got, out[:300], text)
    assert text.startswith('xprofd: ') and all(w in text for w in say), text
    return text


def on_terminal(*words):
    """What a terminal receives from stdout and stderr."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([daemon.XPROFD, 'query', '--xprof', *map(os.fsencode, words)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    got = b''
    try:
        while True:
            piece = os.read(ours, 65536)
            if not piece:
                break
            got += piece
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        os.close(ours)
        p.wait(60)
    return got


def harmless(text):
    text = text.decode('utf8')
    bad = [c for c in text if (ord(c) < 32 and c not in '\r\n\t') or 127 <= ord(c) < 160 or c in '\u202e\u2066\u200f']
    assert not bad, (bad, text[:500])
    return text


@pytest.fixture(scope='module')
def logs(make, tmp_path_factory):
    return make(RUN, '--steps', '12', root=tmp_path_factory.mktemp('query'))


@pytest.fixture(scope='module')
def evil(logs, tmp_path_factory):
    """The same profile with an operation renamed, under names that are as bad."""
    assert len(EVIL) == len(NAME)
    root = tmp_path_factory.mktemp('evil')
    with open(daemon.profile(logs, RUN), 'rb') as f:
        data = f.read()
    assert NAME in data
    folder = os.path.join(str(root), 'plugins', 'profile', 'r\x1b]0;x\x07')
    os.makedirs(folder)
    for host in (b'h\x1b[2J', b'\xff\x9b'):
        with open(os.path.join(os.fsencode(folder), host + b'.xplane.pb'), 'wb') as f:
            f.write(data.replace(NAME, EVIL))
    return str(root)


# --- answers ---


@pytest.fixture(scope='module')
def served(logs):
    d = daemon.Daemon('--logdir', logs)
    yield d
    d.stop()


@pytest.mark.parametrize('tool', TABLES + ['smart_suggestion', 'memory_profile', 'trace_viewer', 'trace_viewer@'])
def test_json_is_what_the_server_answers(logs, served, tool):
    r = served.compat('data', run=RUN, tag=tool, host=HOST)
    assert r.status == 200
    assert ok(logs, tool, '--json') == r.body
    assert ok(logs, tool, '--run', RUN, '--host=' + HOST) == r.body


@pytest.mark.parametrize('tool', TABLES)
def test_csv_is_what_data_csv_answers(logs, served, tool):
    r = served.compat('data_csv', run=RUN, tag=tool, host=HOST)
    assert r.status == 200 and r.type.startswith('text/csv')
    assert r.headers['content-disposition'] == 'attachment; filename="%s_%s_0.csv"' % (tool, RUN)
    assert ok(logs, tool, '--csv') == r.body


def test_a_parameter_of_the_tool_reaches_it(logs, served):
    window = dict(start_time_ms=0, end_time_ms=1, resolution=8000)
    r = served.compat('data', run=RUN, tag='trace_viewer@', host=HOST, **window)
    part = ok(logs, 'trace_viewer@', *('%s=%s' % kv for kv in window.items()))
    assert part == r.body and len(part) < len(ok(logs, 'trace_viewer@'))


def test_a_table_is_aligned(logs):
    """Every column begins, or for numbers ends, at one place: there is a gap of two below each other."""
    answer = json.loads(ok(logs, 'hlo_stats'))
    text = ok(logs, 'hlo_stats', '--table').decode('utf8')
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith('Rank'))
    rows = lines[head + 1:]
    assert len(rows) == len(answer['rows']) > 5
    labels = [c['label'] for c in answer['cols']]
    for label in labels:
        assert label in lines[head], label
    op = labels.index('HLO op name')
    at = lines[head].index('HLO op name')
    for row, cells in zip(rows, answer['rows']):
        name = cells['c'][op]['v']
        assert row[at - 2:at] == '  ' and row[at:].startswith(name[:57]), row
    ends = lines[head].index('#Occurrences') + len('#Occurrences')
    for row, cells in zip(rows, answer['rows']):
        assert row[:ends].endswith(' %d' % cells['c'][labels.index('#Occurrences')]['v']), row


def test_a_cell_is_one_line_of_bounded_width(logs):
    rows = [line for line in ok(logs, 'hlo_stats', '--table').decode('utf8').splitlines() if '%fusion' in line]
    assert rows and all('...' in line for line in rows)


def test_properties_of_a_table_are_shown(logs):
    text = ok(logs, 'framework_op_stats', '--table').decode('utf8')
    for key, value in json.loads(ok(logs, 'framework_op_stats'))[0]['p'].items():
        if isinstance(value, str) and value:
            assert '%s: %s\n' % (key, value) in text


def test_one_file_and_a_folder_are_sources(logs, tmp_path):
    want = ok(logs, 'hlo_stats')
    assert ok(daemon.profile(logs, RUN), 'hlo_stats') == want
    folder = tmp_path / 'one'
    folder.mkdir()
    shutil.copy(daemon.profile(logs, RUN), folder)
    assert ok(str(folder), 'hlo_stats') == want


def test_the_newest_run_is_taken_and_hosts_are_chosen(make, tmp_path):
    root = make('2026_01_01_10_00_00', '--steps', '2', root=tmp_path)
    make('2026_01_02_10_00_00', '--steps', '4', '--hosts', '3', root=tmp_path)
    code, new, said = query(root, 'hlo_stats')
    assert code == 0 and said == b'xprofd: run "2026_01_02_10_00_00", the newest of 2: --run takes another\n'
    assert new == ok(root, 'hlo_stats', '--run', '2026_01_02_10_00_00')
    assert new != ok(root, 'hlo_stats', '--run', '2026_01_01_10_00_00')

    def occurrences(*hosts):
        answer = json.loads(ok(root, 'framework_op_stats', '--run', '2026_01_02_10_00_00', *(x for h in hosts for x in ('--host', h))))[1]
        at = [c['id'] for c in answer['cols']].index('occurrences')
        return sum(row['c'][at]['v'] for row in answer['rows'])
    one, two = occurrences('host-0'), occurrences('host-0', 'host-2')
    assert 0 < one < two < occurrences()


# --- what is refused ---


def test_help_names_the_options_and_the_tools():
    out = ok('--help').decode()
    assert all(w in out for w in ('SOURCE', '--json', '--csv', '--table', '--run', '--host', 'name=value', *TABLES))


@pytest.mark.parametrize('words,say', [
    ([], ['what to read', 'which tool', '--help']),
    (['.'], ['which tool', '--help']),
    (['.', 'hlo_stats', '--bogus'], ['--bogus']),
    (['.', 'hlo_stats', '--run'], ['--run needs a value']),
    (['.', 'hlo_stats', '--host='], ['--host needs a value']),
    (['.', 'hlo_stats', 'novalue'], ['name=value', 'novalue']),
    (['.', 'hlo_stats', *['a=%d' % i for i in range(40)]], ['too many parameters']),
    (['.', 'hlo_stats', *['--host=h%d' % i for i in range(70)]], ['--host', 'too often']),
    (['.', 'no_such_tool'], ['no_such_tool', 'hlo_stats', 'trace_viewer@']),
    (['/no/such/place', 'hlo_stats'], ['/no/such/place']),
])
def test_a_wrong_command_line_is_named_and_ends_with_2(words, say):
    refused(2, *words, say=say)


def test_an_unknown_run_or_host_says_which_there_are(logs):
    refused(1, logs, 'hlo_stats', '--run', 'nope', say=['"nope"', '--run is one of: ' + RUN])
    refused(1, logs, 'hlo_stats', '--host', 'nope', say=['"nope"', '--host is one of: ' + HOST])


def test_a_tool_of_one_host_says_which_to_choose(make, tmp_path):
    root = make('two', '--steps', '1', '--hosts', '2', root=tmp_path)
    refused(1, root, 'memory_profile', say=['one host', '--host is one of: host-0, host-1'])
    assert ok(root, 'memory_profile', '--host', 'host-1')


def test_what_is_no_table_says_so(logs):
    refused(1, logs, 'memory_profile', '--table', say=['memory_profile is no table', '--json'])
    refused(1, logs, 'memory_profile', '--csv', say=['CSV'])


def test_a_directory_without_profiles_says_what_is_expected(tmp_path):
    refused(1, str(tmp_path), 'hlo_stats', say=['found', 'expected', 'xplane.pb'])
    os.makedirs(daemon.run_dir(tmp_path, 'empty'))
    refused(1, str(tmp_path), 'hlo_stats', '--run', 'empty', say=['"empty"', 'no'])


@pytest.mark.parametrize('data', [b'no profile\n', b'\xff' * 4000], ids=['text', 'ones'])
def test_a_file_that_is_no_profile_is_refused(tmp_path, data):
    path = tmp_path / 'x.xplane.pb'
    path.write_bytes(data)
    refused(1, str(path), 'hlo_stats', say=[])


@pytest.mark.parametrize('kind', ['truncated', 'bitflip'])
def test_a_damaged_profile_is_refused_or_read_and_never_half_said(tmp_path, kind):
    daemon.generate(tmp_path, 'bad', '--hostile', kind)
    code, out, err = query(str(tmp_path), 'hlo_stats')
    assert code in (0, 1) and b'anitizer' not in err
    if code:
        assert out == b'' and len(err) > 20
    else:
        json.loads(out)


def test_a_full_disk_is_no_success(logs):
    with open('/dev/full', 'wb') as full:
        code, _, err = query(logs, 'hlo_stats', stdout=full)
    assert code == 1 and b'could not be written' in err


# --- the terminal ---


def test_a_pipe_gets_the_bytes_and_a_terminal_what_is_harmless(evil):
    host = ['--host', os.fsdecode(b'\xff\x9b')]
    assert EVIL.replace(b'\x1b', b'\\u001b').replace(b'\x07', b'\\u0007') in ok(evil, 'hlo_stats', *host)
    assert EVIL in ok(evil, 'hlo_stats', '--csv', *host)
    for form in ('--json', '--csv', '--table'):
        text = harmless(on_terminal(evil, 'hlo_stats', form, *host))
        assert 'xx_bwd' in text, form
    assert 'ev?[31m???xx_bwd' in text


def test_a_table_is_harmless_in_a_pipe_too(evil):
    assert 'ev?[31m???xx_bwd' in harmless(ok(evil, 'hlo_stats', '--table', '--host', os.fsdecode(b'\xff\x9b')))


def test_sentences_are_harmless(evil, logs):
    for words in ([evil, 'hlo_stats', '--run', 'x'], [evil, 'hlo_stats', '--host', '\x1b[0m'], [evil, 'memory_profile'],
                  [logs, 'x\x1b[0m'], [logs, 'hlo_stats', '\x1b[0m'], [logs, 'hlo_stats', '--\x1b[0m'], ['\x1b[0m', 'hlo_stats']):
        code, out, err = query(*words)
        assert code in (1, 2) and out == b''
        assert '?' in harmless(err), words


def test_bytes_do_not_go_to_a_terminal(logs):
    words = [logs, 'trace_viewer@', 'format=pb']
    assert ok(*words)
    assert 'send it into a file' in harmless(on_terminal(*words))
