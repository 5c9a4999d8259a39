// Every page, by its name in the address. A page is one folder and one row here; all but the first
// come when they are asked for.
import type { ComponentType } from "preact";
import { tools, TIMELINE } from "../model/tools";
import { RunsPage } from "./runs/page";

type Loader = () => Promise<ComponentType>;

export interface View {
  page: string;
  load: ComponentType | Loader;
  lazy: boolean;
}

const lazy = (page: string, load: Loader): View => ({ page, load, lazy: true });
const tool: Loader = () => import("./tool/page").then((m) => m.ToolPage);

export const views: View[] = [
  { page: "", load: RunsPage, lazy: false },
  lazy("run", () => import("./run/page").then((m) => m.RunPage)),
  lazy(TIMELINE, () => import("./trace/page").then((m) => m.TracePage)),
  lazy("compare", () => import("./compare/page").then((m) => m.ComparePage)),
  lazy("captures", () => import("./captures/page").then((m) => m.CapturesPage)),
  lazy("admin", () => import("./admin/page").then((m) => m.AdminPage)),
  ...tools.filter((t) => t.id !== TIMELINE).map((t) => lazy(t.id, tool)),
];
