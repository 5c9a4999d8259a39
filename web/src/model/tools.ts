// The tools of a run as the pages know them: where each stands, its icon and its key.
import type { IconName } from "../widgets/icon";

export interface Tool {
  id: string; // the API's, and the page's name in the address
  label: string;
  icon: IconName;
  key: string; // after G
  group: string;
  question: string;
}

export const TIMELINE = "trace";

export const tools: Tool[] = [
  { id: "overview_page", label: "Overview", icon: "gauge", key: "o", group: "", question: "Is it fast enough, and if not, why?" },
  { id: TIMELINE, label: "Timeline", icon: "timeline", key: "t", group: "", question: "What happened when?" },
  { id: "smart_suggestion", label: "Suggestions", icon: "bulb", key: "s", group: "", question: "What should I change?" },
  { id: "op_profile", label: "Op profile", icon: "tree", key: "p", group: "Time", question: "Which ops waste the most hardware?" },
  { id: "hlo_stats", label: "HLO ops", icon: "table", key: "h", group: "Time", question: "How long does each HLO op take?" },
  { id: "framework_op_stats", label: "Framework ops", icon: "layers", key: "f", group: "Time", question: "Which framework ops take the time?" },
  { id: "kernel_stats", label: "GPU kernels", icon: "chip", key: "k", group: "Time", question: "Which kernels dominate?" },
  { id: "roofline_model", label: "Roofline", icon: "roof", key: "r", group: "Time", question: "Memory- or compute-bound, and how far from the roof?" },
  { id: "input_pipeline_analyzer", label: "Input pipeline", icon: "input", key: "i", group: "Time", question: "Does the device wait for data?" },
  { id: "memory_profile", label: "Memory over time", icon: "memory", key: "m", group: "Memory", question: "How does allocator use move over time?" },
  { id: "memory_viewer", label: "Program buffers", icon: "buffers", key: "b", group: "Memory", question: "Which buffers make up the peak?" },
  { id: "graph_viewer", label: "Graph", icon: "graph", key: "g", group: "Program", question: "What surrounds this op?" },
  { id: "pod_viewer", label: "Hosts and steps", icon: "grid", key: "w", group: "Fleet", question: "Which core or host is the straggler?" },
  { id: "megascale_stats", label: "Megascale", icon: "net", key: "x", group: "Fleet", question: "Is the network between slices the bottleneck?" },
  { id: "inference_profile", label: "Inference", icon: "request", key: "n", group: "Serving", question: "Where does request latency go?" },
  { id: "utilization_viewer", label: "Utilization", icon: "bars", key: "u", group: "Hardware", question: "Which hardware units were busy?" },
  { id: "kernel_utilization", label: "Custom kernels", icon: "bars", key: "e", group: "Hardware", question: "What does my Pallas or Mosaic kernel do inside, and which units does it keep busy?" },
  { id: "perf_counters", label: "Counters", icon: "hash", key: "c", group: "Hardware", question: "What is the raw value of a counter?" },
];

export const toolOf = (id: string): Tool | undefined => tools.find((t) => t.id === id);
