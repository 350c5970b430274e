#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "command.h"

/* Reading of one command line. */
struct parse {
	struct call *call;
	int argc;
	char *const *argv;
	int at; /* in argv */
	int noperands;
	struct err *err;
};

/* How many words of argv `words` are; 0 if they are others. */
static int
match(const char *words, int argc, char *const argv[])
{
	int n = 0;

	for (;;) {
		size_t len = strcspn(words, " ");

		if (++n >= argc || strlen(argv[n]) != len ||
		    memcmp(argv[n], words, len) != 0)
			return 0;
		if (words[len] == '\0')
			return n;
		words += len + 1;
	}
}

const struct command *
command_find(int argc, char *const argv[])
{
	for (const struct command *c = commands; c->words != NULL; c++)
		if (match(c->words, argc, argv) != 0)
			return c;
	return NULL;
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
	else if (parse->at + 1 < parse->argc)
		*value = parse->argv[++parse->at];
	else
		return err_set(parse->err, ERR_REFUSED, "--%s takes a %s",
		    command->options[i].name, command->options[i].value);
	return 1;
}

static int
take_operand(struct parse *parse)
{
	if (parse->noperands == COMMAND_OPERANDS)
		return err_set(parse->err, ERR_REFUSED, "too many operands");
	parse->call->operands[parse->noperands++] = parse->argv[parse->at];
	return 0;
}

int
command_parse(struct call *call, int argc, char *const argv[], char **rest,
    int *nrest, struct err *err)
{
	struct parse parse = { call, argc, argv, 0, 0, err };

	*nrest = 0;
	rest[(*nrest)++] = argv[0];
	parse.at = match(call->command->words, argc, argv) + 1;
	for (; parse.at < argc; parse.at++) {
		char *arg = argv[parse.at];
		int taken = 0;

		if (arg[0] != '-') {
			if (take_operand(&parse) != 0)
				return -1;
			continue;
		}
		if (strncmp(arg, "--", 2) == 0)
			taken = take_option(&parse);
		if (taken < 0)
			return -1;
		if (taken > 0)
			continue;
		rest[(*nrest)++] = arg;
		/* The one setting whose value is a word of its own. */
		if (strcmp(arg, "--config") == 0 && parse.at + 1 < argc)
			rest[(*nrest)++] = argv[++parse.at];
	}
	rest[*nrest] = NULL;
	return 0;
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

void
command_usage(FILE *out, const struct command *command)
{
	(void)fprintf(out, "%s", command->words);
	if (command->operands[0] != '\0')
		(void)fprintf(out, " %s", command->operands);
	for (const struct command_option *o = command->options; o->name != NULL;
	     o++) {
		if (o->value == NULL)
			(void)fprintf(out, " [--%s]", o->name);
		else
			(void)fprintf(out, " [--%s %s]", o->name, o->value);
	}
	(void)fputc('\n', out);
}
