"""Every tool of XProf: cold, with the profile resident, and known; and many hosts at once."""
from . import data, measure, report, web

# As the tools' pages ask for them. Of a module: the request for the list of them comes first, and is not counted.
OF_MODULE = ('memory_viewer', 'graph_viewer')
TOOLS = ('overview_page', 'input_pipeline_analyzer', 'op_profile', 'hlo_stats', 'framework_op_stats', 'kernel_stats',
         'roofline_model', 'pod_viewer', 'memory_profile', 'memory_viewer', 'graph_viewer', 'inference_profile',
         'megascale_stats', 'perf_counters', 'utilization_viewer', 'kernel_utilization', 'smart_suggestion')
# What cannot be beaten by much, in CPU seconds: a walk over the file with every statistic read, and
# writing the answer (measured by a program of its own, see docs/benchmarks.md).
FLOOR_S_A_GB = 0.90
FLOOR_MODULE_S = 0.001


def tool_path(tool, run, host, module, **more):
    args = {'run': run, 'tag': tool, 'host': host}
    if tool in OF_MODULE:
        args.update(module_name=module, memory_space=0)
    if tool == 'graph_viewer':
        args.update(type='long_txt')
    return measure.COMPAT + '/data?' + web.query(**args, **more)


class Tools:
    def __init__(self, bench):
        self.b, self.a = bench, bench.a

    def module(self, s, run):
        """The page asks for the list first, and shows one of it: the training step, or else the first."""
        r = measure.need(s, web.get(s.port, measure.COMPAT + '/module_list?' + web.query(run=run), timeout=self.a.timeout))
        names = r.decoded().decode('utf8', 'replace').split(',')
        return ([n for n in names if 'train_step' in n] or names)[0]

    def cold(self, kind, run, tool):
        """A fresh process; then the same tool with the profile there, and the answer known."""
        host, best = data.hosts(self.a.data, run)[0], {}
        for _ in range(self.a.repeat):
            data.warm(self.a.data, run)
            with data.Copy(self.a.data, run) as logdir, measure.start(kind, logdir) as s:
                module = self.module(s, run) if tool in OF_MODULE else ''
                before = s.usage()
                r = web.get(s.port, tool_path(tool, run, host, module), timeout=self.a.timeout)
                got = {'cpu_s': s.usage().cpu - before.cpu, 'wall_s': r.wall, 'peak': s.usage().peak}
                if r.status != 200:
                    return {}
                got.update(self.again(s, run, host, tool, module) if kind.ours else {})
            for k, v in got.items():
                best[k] = min(best.get(k, v), v)
            if got['wall_s'] > 10:
                break
        return best

    def again(self, s, run, host, tool, module):
        """A parameter that no tool knows makes an answer that nobody has yet."""
        resident, warm = [], []
        for i in range(3):
            before = s.usage().cpu
            measure.need(s, web.get(s.port, tool_path(tool, run, host, module, again=i)))
            resident.append((s.usage().cpu - before) * 1e3)
        for _ in range(5):
            warm.append(web.get(s.port, tool_path(tool, run, host, module)).wall * 1e3)
        return {'resident_ms': min(resident), 'warm_ms': min(warm)}

    def pod(self, kind, run):
        """The overview over all hosts of a run."""
        data.warm(self.a.data, run)
        with data.Copy(self.a.data, run) as logdir, measure.start(kind, logdir) as s:
            before = s.usage()
            r = measure.need(s, web.get(s.port, tool_path('overview_page', run, 'ALL_HOSTS', ''), timeout=self.a.timeout))
            after = s.usage()
        return {'cpu_s': after.cpu - before.cpu, 'peak': after.peak, 'wall_s': r.wall}


def goal(tool, total, rs):
    """CPU seconds: five times the floor or half of xprof-rs's, whichever is larger."""
    if tool == 'memory_viewer':
        return rs + 0.010 if rs else 5 * FLOOR_MODULE_S
    return max(5 * FLOOR_S_A_GB * total / 1e9, rs / 2 if rs else 0)


def table(run, total, rows):
    """rows: [(tool, {server: result})]"""
    out = ['### %s (%s): tools' % (run, report.size(total)), '',
           '| tool | xprofd, cold CPU | xprof-rs, cold CPU | xprof-rs / xprofd | goal | | resident, CPU | known, wall |',
           '|---|---|---|---|---|---|---|---|']
    for tool, got in rows:
        ours, rs = got.get('xprofd') or {}, (got.get('xprof-rs') or {}).get('cpu_s')
        if not ours:
            out.append('| %s | – | %s | – | – | – | – | – |' % (tool, report.seconds(rs) if rs else '–'))
            continue
        limit = goal(tool, total, rs)
        out.append('| %s | %s | %s | %s | ≤ %s | %s | %s | %s |' % (
            tool, report.seconds(ours['cpu_s']), report.seconds(rs) if rs else '–',
            '%.1f×' % (rs / ours['cpu_s']) if rs else '–', report.seconds(limit),
            'met' if ours['cpu_s'] <= limit else 'missed', report.ms(ours['resident_ms']), report.ms(ours['warm_ms'])))
    return '\n'.join(out) + '\n'
