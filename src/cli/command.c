#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "command.h"
#include "core/rfc3339.h"

/* Reading of one command line. */
struct parse {
	struct call *call;
	int argc;
	char *const *argv;
	int at; /* in argv */
	struct err *err;
};

/* How many words of argv, from `at` on, `words` are; 0 if they are others. */
static int
match(const char *words, int argc, char *const argv[], int at)
{
	int n = 0;

	while (words[0] != '\0') {
		size_t len = strcspn(words, " ");

		if (at + n >= argc || strlen(argv[at + n]) != len ||
		    memcmp(argv[at + n], words, len) != 0)
			return 0;
		n++;
		words += len + (words[len] != '\0');
	}
	return n;
}

/* The one setting whose value is a word of its own. */
static bool
takes_next(const char *arg)
{
	return strcmp(arg, "--config") == 0;
}

int
command_find(struct call *call, int argc, char *const argv[], struct err *err)
{
	int at = 1;

	while (at < argc && argv[at][0] == '-')
		at += takes_next(argv[at]) ? 2 : 1;
	call->at = at;
	call->command = &command_none;
	if (at >= argc)
		return 0;
	for (const struct command *c = commands; c->words != NULL; c++) {
		if (match(c->words, argc, argv, at) == 0)
			continue;
		call->command = c;
		return 0;
	}
	return err_set(err, ERR_REFUSED,
	    "%.60s: no such command; see `postrider help`%s", argv[at],
	    at == 1 ? "" : " (before a command, write --NAME=VALUE)");
}

static int
find_option(const struct command *command, const char *name, size_t len)
{
	for (int i = 0; command->options[i].name != NULL; i++)
		if (strlen(command->options[i].name) == len &&
		    memcmp(command->options[i].name, name, len) == 0)
			return i;
	return -1;
}

/* Take argv[at] if it is an option of the command: 1, or 0, or -1. */
static int
take_option(struct parse *parse)
{
	const struct command *command = parse->call->command;
	const char *name = parse->argv[parse->at] + 2;
	size_t len = strcspn(name, "=");
	int i = find_option(command, name, len);
	const char **value;

	if (i < 0)
		return 0;
	value = &parse->call->values[i];
	if (command->options[i].value == NULL && name[len] == '=')
		return err_set(parse->err, ERR_REFUSED, "--%s takes no value",
		    command->options[i].name);
	if (command->options[i].value == NULL)
		*value = "";
	else if (name[len] == '=')
		*value = name + len + 1;
	else if (parse->at < parse->call->at)
		return err_set(parse->err, ERR_REFUSED,
		    "--%s: before the command, write --%s=%s",
		    command->options[i].name, command->options[i].name,
		    command->options[i].value);
	else if (parse->at + 1 < parse->argc)
		*value = parse->argv[++parse->at];
	else
		return err_set(parse->err, ERR_REFUSED, "--%s takes a %s",
		    command->options[i].name, command->options[i].value);
	return 1;
}

/* The second operand's name; NULL if the command takes none. */
static const char *
second_operand(const struct command *command)
{
	const char *space = strchr(command->operand, ' ');

	return space == NULL ? NULL : space + 1;
}

static void
take_operand(struct call *call, const char *arg)
{
	if (call->command->operand[0] != '\0' && call->operand == NULL)
		call->operand = arg;
	else if (second_operand(call->command) != NULL && call->second == NULL)
		call->second = arg;
	else
		call->surplus = arg;
}

int
command_parse(struct call *call, int argc, char *const argv[], char **rest,
    int *nrest, struct err *err)
{
	struct parse parse = { call, argc, argv, 1, err };
	int behind =
	    call->at + match(call->command->words, argc, argv, call->at);

	*nrest = 0;
	rest[(*nrest)++] = argv[0];
	for (; parse.at < argc; parse.at++) {
		char *arg = argv[parse.at];
		int taken = 0;

		if (parse.at >= call->at && parse.at < behind)
			continue;
		/* "-" alone is the standard input. */
		if (arg[0] != '-' || arg[1] == '\0') {
			take_operand(call, arg);
			continue;
		}
		if (strncmp(arg, "--", 2) == 0)
			taken = take_option(&parse);
		if (taken < 0)
			return -1;
		if (taken > 0)
			continue;
		rest[(*nrest)++] = arg;
		if (takes_next(arg) && parse.at + 1 < argc)
			rest[(*nrest)++] = argv[++parse.at];
	}
	rest[*nrest] = NULL;
	return 0;
}

int
command_check(const struct call *call, struct err *err)
{
	const struct command *command = call->command;
	char why[96] = "";

	if (call->surplus != NULL)
		(void)snprintf(why, sizeof(why),
		    "%.60s is one operand too many", call->surplus);
	else if (command->operand[0] != '\0' && call->operand == NULL)
		(void)snprintf(
		    why, sizeof(why), "%s is missing", command->operand);
	else if (second_operand(command) != NULL && call->second == NULL)
		(void)snprintf(
		    why, sizeof(why), "%s is missing", second_operand(command));
	for (int i = 0; command->options[i].name != NULL; i++)
		if (why[0] == '\0' && command->options[i].is_required &&
		    call->values[i] == NULL)
			(void)snprintf(why, sizeof(why), "--%s %s is missing",
			    command->options[i].name,
			    command->options[i].value);
	if (why[0] == '\0')
		return 0;
	(void)command_misused(call, err, why);
	return -1;
}

const char *
command_value(const struct call *call, const char *option)
{
	int i = find_option(call->command, option, strlen(option));

	return i < 0 ? NULL : call->values[i];
}

enum status
command_misused(const struct call *call, struct err *err, const char *why)
{
	(void)err_set(err, ERR_REFUSED, "%s: %s; see `postrider help`",
	    call->command->words, why);
	return STATUS_USAGE;
}

static enum status
take_id(const struct call *call, const char *text, int64_t *id, struct err *err)
{
	char *end;

	errno = 0;
	*id = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || *id <= 0)
		return command_misused(call, err, "an id is a number");
	return STATUS_DONE;
}

enum status
command_id(const struct call *call, int64_t *id, struct err *err)
{
	return take_id(call, call->operand, id, err);
}

enum status
command_second_id(const struct call *call, int64_t *id, struct err *err)
{
	return take_id(call, call->second, id, err);
}

enum status
command_time(
    const struct call *call, const char *option, usec_t *out, struct err *err)
{
	const char *text = command_value(call, option);

	*out = -1;
	if (text == NULL)
		return STATUS_DONE;
	*out = rfc3339_parse(text, strlen(text));
	if (*out >= 0)
		return STATUS_DONE;
	return command_misused(
	    call, err, "a time is written as 2026-01-31T12:00:00Z");
}

enum status
command_number(const struct call *call, const char *option, int max, int *out,
    struct err *err)
{
	const char *text = command_value(call, option);
	char why[64], *end;
	long number;

	if (text == NULL)
		return STATUS_DONE;
	errno = 0;
	number = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || number < 1 || number > max) {
		(void)snprintf(why, sizeof(why),
		    "--%s is a number from 1 to %d", option, max);
		return command_misused(call, err, why);
	}
	*out = (int)number;
	return STATUS_DONE;
}

void
command_usage(FILE *out, const struct command *command)
{
	(void)fprintf(out, "%s", command->words);
	if (command->operand[0] != '\0')
		(void)fprintf(out, " %s", command->operand);
	for (const struct command_option *o = command->options; o->name != NULL;
	     o++) {
		(void)fprintf(
		    out, o->is_required ? " --%s" : " [--%s", o->name);
		if (o->value != NULL)
			(void)fprintf(out, " %s", o->value);
		(void)fputs(o->is_required ? "" : "]", out);
	}
	(void)fputc('\n', out);
}
