"""Several projects in one process: each its own runs, read again when the table changes."""
import json
import os
import time

import pytest

import daemon


def row(*roots, **more):
    return dict({'roots': [str(r) for r in roots]}, **more)


def write(path, projects):
    """As an editor does: a new file in the old one's place."""
    text = projects if isinstance(projects, str) else json.dumps({'projects': projects})
    with open(str(path) + '.new', 'w', encoding='utf8') as f:
        f.write(text)
    os.rename(str(path) + '.new', str(path))


def until(what, limit=20):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, 'it did not come to be'
        time.sleep(0.05)


@pytest.fixture(scope='module')
def roots(tmp_path_factory):
    """{'a': folder, ...}: one run each, of the folder's name."""
    found = {}
    for name in 'abc':
        found[name] = tmp_path_factory.mktemp(name)
        daemon.generate(found[name], 'run-' + name, '--steps', '2')
    return found


@pytest.fixture
def table(tmp_path, roots):
    path = tmp_path / 'projects.json'
    write(path, {'a': row(roots['a']), 'both': row(roots['a'], roots['b'])})
    return path


def runs(server, project):
    r = server.get('/p/%s/api/v1/runs' % project)
    return sorted(x['run'] for x in r.json()['runs']) if r.status == 200 else r.status


def log(server, words):
    return any(words in line for line in server.lines)


def test_each_project_shows_the_runs_of_its_roots(start, table, roots):
    server = start('--projects', table)
    assert runs(server, 'a') == ['run-a']
    assert runs(server, 'both') == ['run-a', 'run-b']
    for path in ('/p/none/', '/p/none', '/p/none/api/v1/runs', '/p/A/api/v1/runs', '/p//api/v1/runs'):
        assert server.get(path).status == 404, path
    r = server.get('/p/both/data/plugin/profile/runs')
    assert sorted(r.json()) == ['run-a', 'run-b']
    assert server.get('/p/a/api/v1/runs').json()['location'] == str(roots['a'])
    tracks = server.get('/p/both/api/v1/tracks?run=run-b')
    assert tracks.status == 200, tracks
    assert server.get('/p/a/api/v1/tracks?run=run-b').status == 404


def test_several_projects_without_a_default_are_listed(start, table):
    server = start('--projects', table)
    daemon.sentence(server.get('/api/v1/runs'), 404, 'not_found', 'project')
    listed = server.get('/api/v1/projects').json()
    assert [p['project'] for p in listed['projects']] == ['a', 'both']
    assert listed['default'] is None
    page = server.get('/')
    assert page.status == 200 and page.type.startswith('text/html')
    assert 'href="p/a/"' in page.text() and 'href="p/both/"' in page.text()
    assert server.get('/p/a').headers['location'] == 'a/'


def test_the_default_project_is_that_of_the_root(start, table):
    server = start('--projects', table, '--default-project', 'both')
    assert server.get('/').headers['location'] == 'p/both/'
    assert sorted(server.compat('runs').json()) == ['run-a', 'run-b']
    assert server.api('projects').json()['default'] == 'both'


def test_several_directories_are_one_project(start, roots):
    server = start('--logdir', roots['a'], '--logdir', roots['b'])
    assert runs(server, 'local') == ['run-a', 'run-b']


def test_a_new_table_is_taken_and_a_bad_one_is_not(start, table, roots, tmp_path):
    server = start('--projects', table, '--audit-log', tmp_path / 'audit')
    assert runs(server, 'c') == 404
    write(table, {'a': row(roots['a']), 'c': row(roots['c'])})
    until(lambda: runs(server, 'c') == ['run-c'])
    assert runs(server, 'both') == 404 and runs(server, 'a') == ['run-a']
    write(table, '{"projects": {\n"a": {"roots": ["%s"],\n"colour": 1}}}' % roots['a'])
    until(lambda: log(server, 'line 3: project "a": the field "colour" is unknown'))
    assert runs(server, 'c') == ['run-c']
    os.unlink(table)
    until(lambda: log(server, 'No such file'))
    assert runs(server, 'c') == ['run-c']
    write(table, {'b': row(roots['b'])})
    until(lambda: runs(server, 'b') == ['run-b'])
    assert runs(server, 'c') == 404
    assert server.get('/').headers['location'] == 'p/b/'
    told = [json.loads(line) for line in (tmp_path / 'audit').read_text().splitlines()]
    assert [e['what'] for e in told] == ['projects_changed'] * 2 and told[0]['detail'] == str(table)


@pytest.mark.parametrize('text, words', [
    ('{"projects": {"A": {"roots": ["/"]}}}', 'line 1'),
    ('{"projects": {"a": {"roots": []}}}', 'no roots'),
    ('{"projects": {"a": {"roots": ["/nowhere/at/all"]}}}', 'project "a"'),
    ('{"projects": {}}', 'the table is'),
    ('{"projects": {"a": 1, "a": 2}}', 'duplicate'),
    ('{', 'line 1'),
])
def test_a_table_that_is_wrong_at_the_start_ends_the_process(table, text, words):
    write(table, text)
    code, _, err = daemon.run_to_end('--projects', table, '--port', '0')
    assert code == 2 and words in err and len(err.splitlines()) == 1, err


def test_frontend_and_shard_serve_a_table(start, table, roots, tmp_path):
    key = tmp_path / 'key'
    key.write_text('a key that both of them share\n')
    shard = start('shard', '--projects', table, '--rpc-key', key, '--identity', 's')
    front = start('frontend', '--projects', table, '--rpc-key', key, '--shards', 'static:s=127.0.0.1:%d' % shard.port)
    assert front.get('/p/both/api/v1/tracks?run=run-b').status == 200
    write(table, {'a': row(roots['a']), 'c': row(roots['c'])})
    until(lambda: front.get('/p/c/api/v1/tracks?run=run-c').status == 200)
