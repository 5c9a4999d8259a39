/* shard/tools/reports.h - reports that have a file of their own, report_<tool>.c, for the rows of
 * their tools.
 */
#ifndef SHARD_REPORTS_H
#define SHARD_REPORTS_H

#include "shard/tools/tool.h"

extern const struct tool_report report_overview_page;
extern const struct tool_report report_roofline_model;
extern const struct tool_report report_op_profile;
extern const struct tool_report report_kernel_stats;
extern const struct tool_report report_input_pipeline_analyzer;
extern const struct tool_report report_hlo_stats;
extern const struct tool_report report_framework_op_stats;
extern const struct tool tool_tools; /* "tools": which of them a run has data for; not XProf's */

extern const struct tool tool_coverage;  /* how much of a run is there; likewise */
extern const struct tool tool_run_facts; /* what the list of runs shows of one; likewise */

extern const struct tool tool_device_activity; /* how busy each device was over time; likewise */

#endif
