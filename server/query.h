/* server/query.h - `xprofd query SOURCE TOOL`: one tool's answer on the terminal, without a server.
 *
 * SOURCE is what --logdir takes: a directory or one profile. The newest run is asked unless --run
 * says another, all its hosts unless --host does, once or several times. Prints the tool's report
 * (with --xprof what XProf's routes answer) as JSON, CSV or tables of aligned columns; a tool's
 * parameters follow as name=value. What is wrong is a sentence
 * on stderr. Into a file or a pipe go the bytes that the server would send; see server/terminal.h
 * for what a terminal gets.
 *
 * Returns the process's exit code: 0, 1 (there is no such answer), 2 (the command line is wrong).
 */
#ifndef SERVER_QUERY_H
#define SERVER_QUERY_H

int query_main(int argc, char **argv);

#endif
