// Names of runs as people read them. Several runs that are opened as one have "//" between their names.
const JOINT = "//";

export const joinRuns = (runs: readonly string[]): string => runs.join(JOINT);

export const runTitle = (run: string): string => run.split(JOINT).join(" + ");

export const runHref = (root: string, run: string): string => `${root}run?run=${encodeURIComponent(run)}`;
