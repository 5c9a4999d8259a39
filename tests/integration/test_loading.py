"""Loads under way: progress, leaving, killing, the memory budget."""
import os
import signal
import subprocess
import threading
import time

import daemon


def window(d, run, **kw):
    return d.api('window', run=run, host='host-0', px=1500, **kw)


def test_progress_counts_up_to_the_end(start, make, tmp_path):
    make('big', '--size', '60MB', root=tmp_path)
    d = start('--logdir', tmp_path, '--threads', '1')
    seen, end = [], time.monotonic() + 60
    while time.monotonic() < end:
        p = d.api('progress', run='big', host='host-0').json()
        seen.append(p)
        if p['state'] in ('ready', 'failed'):
            break
        window(d, 'big')
    last = seen[-1]
    assert last['state'] == 'ready' and last['error'] is None
    assert last['bytes_done'] == last['bytes_total'] > 50e6
    assert last['planes_done'] == last['planes_total'] > 4 and last['events'] > 500000
    for a, b in zip(seen, seen[1:]):
        assert a['bytes_done'] <= b['bytes_done'] and a['events'] <= b['events']


def test_kill_while_loading_and_start_again(start, make, tmp_path):
    make('big', '--size', '60MB', root=tmp_path)
    for after in (0.0, 0.05, 0.15):
        d = start('--logdir', tmp_path)
        asker = threading.Thread(target=ask_quietly, args=(d, 'big'))
        asker.start()
        time.sleep(after)
        d.stop(signal.SIGKILL)
        asker.join(20)
        assert not asker.is_alive()
    d = start('--logdir', tmp_path)
    assert d.loaded('big').json()['events'] > 500000


def ask_quietly(d, run):
    try:
        d.trace(run, hosts='host-0', resolution=8000)
    except OSError:
        pass
    except Exception as e:  # the connection may end in the middle of a head
        assert 'HTTP' in type(e).__mro__[1].__name__ or isinstance(e, (EOFError, ValueError)), e


def test_terminate_while_loading_ends_with_0(start, make, tmp_path):
    make('big', '--size', '60MB', root=tmp_path)
    d = start('--logdir', tmp_path)
    asker = threading.Thread(target=ask_quietly, args=(d, 'big'))
    asker.start()
    time.sleep(0.05)
    # An answer under way may be finished: ten seconds, then it is cut off.
    d.proc.terminate()
    assert d.proc.wait(25) == 0
    asker.join(20)


def test_a_profile_above_the_budget_is_503_with_retry_after(start, make, tmp_path):
    make('big', '--size', '200MB', root=tmp_path)
    make('small', '--steps', '2', root=tmp_path)
    d = start('--logdir', tmp_path, '--memory-budget', '16MiB')
    end = time.monotonic() + 60
    while True:
        r = window(d, 'big')
        if r.status != 200 or time.monotonic() > end:
            break
        time.sleep(0.05)
    daemon.sentence(r, 503, 'busy')
    assert 1 <= int(r.headers['retry-after']) <= 30
    assert d.loaded('small').json()['events'] > 1000
    assert d.status_kb('VmHWM') < 150000
    assert d.alive()


def test_runs_in_turn_stay_within_the_budget(start, make, tmp_path):
    for i in range(6):
        make('run-%d' % i, '--size', '30MB', '--seed', str(i), root=tmp_path)
    d = start('--logdir', tmp_path, '--memory-budget', '40MB')
    rss = []
    for i in range(12):
        r = d.loaded('run-%d' % (i % 6))
        assert r.status == 200, r
        assert window(d, 'run-%d' % (i % 6)).status == 200
        rss.append(d.status_kb('VmRSS'))
    assert max(rss) < 160000, rss
    assert max(rss[6:]) < max(rss[:6]) * 1.25 + 8000, rss


def test_many_ask_for_the_same_load_and_share_it(start, make, tmp_path):
    make('big', '--size', '60MB', root=tmp_path)
    d = start('--logdir', tmp_path)
    got = []
    threads = [threading.Thread(target=lambda: got.append(d.trace('big', hosts='host-0', resolution=8000))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert [r.status for r in got] == [200] * 8
    assert len({len(r.body) for r in got}) == 1
    assert d.api('status').json()
    assert d.status_kb('VmHWM') < 400000


def test_a_profile_loads_while_others_are_asked_without_end(start, make, tmp_path):
    make('busy', '--size', '20MB', root=tmp_path)
    make('new', '--size', '20MB', root=tmp_path)
    d = start('--logdir', tmp_path)
    end = d.loaded('busy').json()['end_ps']
    path = '/api/v1/aggregate?run=busy&host=host-0&t0={t0}&t1={t1}'
    flood = subprocess.Popen([os.path.join(daemon.BUILD, 'hammer'), '--port', str(d.port), '--path', path, '--lo', '0',
                              '--hi', str(end), '--clients', '32', '--seconds', '300', '--zoom', '0-4'], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        assert d.loaded('new').json()['events'] > 100000
        assert flood.poll() is None
    finally:
        flood.terminate()
        flood.wait(10)
