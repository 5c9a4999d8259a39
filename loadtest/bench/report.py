"""The Markdown that a run prints."""
import datetime
import os
import platform

ORDER = ('xprofd', 'xprof-rs', 'xprof')


def machine():
    model = cpus = memory = ''
    with open('/proc/cpuinfo') as f:
        for line in f:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
    with open('/proc/meminfo') as f:
        memory = '%.0f GB' % (int(f.readline().split()[1]) / 1e6)
    cpus = len(os.sched_getaffinity(0))
    return '%s, %d cores, %s, Linux %s, load %.1f' % (model or platform.machine(), cpus, memory,
                                                      platform.release().split('-')[0], os.getloadavg()[0])


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC')


def seconds(v):
    return '%.3g s' % v if v < 100 else '%.0f s' % v


def ms(v):
    return '%.2f ms' % v if v < 10 else '%.0f ms' % v


def size(v):
    return '%.1f MB' % (v / 1e6) if v >= 1e6 else '%.1f kB' % (v / 1e3)


def rate(v):
    return '%.1f /s' % v if v < 100 else '%.0f /s' % v


class Table:
    """Rows of one figure by server; ratios say how many times more (or, for rates, fewer) the peer's is."""

    def __init__(self, title):
        self.title, self.rows, self.notes = title, [], []

    def row(self, what, show, values, goal='', higher_is_better=False):
        self.rows.append((what, show, values, goal, higher_is_better))

    def note(self, text):
        self.notes.append(text)

    def text(self):
        names = [n for n in ORDER if n == 'xprofd' or any(n in r[2] for r in self.rows)]
        head = ['measure'] + names + ['%s / xprofd' % n for n in names if n != 'xprofd'] + ['goal']
        out = ['### ' + self.title, '', '| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
        for what, show, values, goal, higher in self.rows:
            cells = [what] + [show(values[n]) if values.get(n) is not None else '–' for n in names]
            for n in names[1:]:
                a, b = values.get('xprofd'), values.get(n)
                ratio = '–'
                if a and b:
                    ratio = '%.1f×' % (a / b if higher else b / a)
                cells.append(ratio)
            out.append('| ' + ' | '.join(cells + [goal]) + ' |')
        out += [''] + ['* ' + n for n in self.notes]
        return '\n'.join(out).rstrip() + '\n'
