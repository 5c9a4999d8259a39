import { expect, test, vi } from "vitest";
const read = vi.fn();
const watch = vi.fn((_url: string, _told: unknown, _ask: () => void) => () => undefined);
vi.mock("../src/api/captures", () => ({ readCaptures: read }));
vi.mock("../src/api/events", () => ({ watch }));
vi.mock("../src/api/client", () => ({ Api: class { url = (): string => "events"; }, asProblem: (e: unknown) => e, isAbort: () => false }));
const { captures, capturesProblem, followCaptures, refreshCaptures } = await import("../src/shell/captures");

const told = (enabled: boolean) => ({ body: { enabled, captures: [], continuous: [], targets: [] }, at: Date.now() });

test("captures are followed from the first answer that says they are on, once, wherever it comes from", async () => {
  read.mockRejectedValueOnce("down");
  const end = followCaptures("/p/local/");
  await vi.waitFor(() => expect(capturesProblem.peek()).toBe("down"));
  expect(watch).not.toHaveBeenCalled();
  read.mockResolvedValue(told(true));
  refreshCaptures();
  await vi.waitFor(() => expect(captures.peek()?.enabled).toBe(true));
  refreshCaptures();
  await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(3));
  expect(watch).toHaveBeenCalledTimes(1);
  end();
  const again = followCaptures("/p/other/");
  await vi.waitFor(() => expect(watch).toHaveBeenCalledTimes(2));
  again();
});

test("where captures are off nothing is followed", async () => {
  watch.mockClear();
  read.mockResolvedValue(told(false));
  const end = followCaptures("/p/local/");
  await vi.waitFor(() => expect(captures.peek()?.enabled).toBe(false));
  expect(watch).not.toHaveBeenCalled();
  end();
});
