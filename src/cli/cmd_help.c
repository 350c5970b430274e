#include <stdio.h>

#include "base/err.h"
#include "command.h"
#include "out.h"

static const char intro[] =
    "postrider COMMAND [OPERAND] [OPTION...] [SETTING...]\n"
    "\n"
    "Options and settings may also stand before the command, there as\n"
    "--NAME=VALUE only.  `postrider COMMAND --help` tells of one command,\n"
    "`postrider -n` checks the settings alone.\n"
    "\n"
    "Commands:\n";

static const char statuses[] =
    "\n"
    "With --json a command prints one JSON value: an object, or an array of\n"
    "them.\n"
    "\n"
    "Exit status:\n"
    "  0  done\n"
    "  1  failed; standard error says why\n"
    "  2  the command line or a setting is wrong\n"
    "  3  migrate --status: there are migrations to run\n"
    "\n";

enum status
cmd_help(const struct call *call, struct err *err)
{
	(void)call;
	(void)err;
	(void)fputs(intro, stdout);
	for (const struct command *c = commands; c->words != NULL; c++) {
		(void)fputs("  ", stdout);
		command_usage(stdout, c);
		(void)printf("      %s\n", c->help);
	}
	(void)fputs(statuses, stdout);
	conf_help(stdout, settings_items);
	return STATUS_DONE;
}

enum status
cmd_none(const struct call *call, struct err *err)
{
	(void)call;
	(void)err_set(err, ERR_REFUSED, "which command?  See `postrider help`");
	return STATUS_USAGE;
}

enum status
cmd_version(const struct call *call, struct err *err)
{
	struct out out;

	if (command_value(call, "json") == NULL) {
		(void)printf("postrider %s\n", POSTRIDER_VERSION);
		return STATUS_DONE;
	}
	out_init(&out, OUT_RECORD, true);
	out_text(&out, "version", POSTRIDER_VERSION);
	out_end(&out);
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
