#include <stdio.h>
#include <string.h>

#include "command.h"

/* Bash parts words at "=" too.  What stands before the word that is completed
 * and is no option is the command, and then its operands and values. */
static const char begin[] =
    "# bash completion for postrider, from `postrider completion bash`\n"
    "_postrider()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} "
    "before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local i found= words=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        =) i=$((i + 1)) ;;\n"
    "        -*) ;;\n"
    "        *) words+=(\"${COMP_WORDS[i]}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $before == = ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    case ${words[*]:0:2} in\n";

static const char end[] = "    esac\n"
			  "    case $before in\n"
			  "    --config) found=FILE ;;\n"
			  "    esac\n"
			  "    if [[ $found == FILE* && $word != -* ]]; then\n"
			  "        compopt -o filenames 2>/dev/null\n"
			  "        mapfile -t COMPREPLY < <(compgen -f -- "
			  "\"$word\")\n"
			  "    else\n"
			  "        mapfile -t COMPREPLY < <(compgen -W "
			  "\"${found#FILE}\" -- \"$word\")\n"
			  "    fi\n"
			  "}\n"
			  "complete -F _postrider postrider\n";

/* How long the first of a command's words is. */
static int
first_len(const struct command *command)
{
	return (int)strcspn(command->words, " ");
}

/* Is it the first in the table that begins with its first word? */
static bool
is_first(const struct command *command)
{
	int len = first_len(command);

	for (const struct command *c = commands; c < command; c++)
		if (first_len(c) == len &&
		    strncmp(c->words, command->words, (size_t)len) == 0)
			return false;
	return true;
}

/* What may stand for an option's value: the words of its name in the help. */
static void
put_values(const struct command_option *option)
{
	const char *at = option->value;

	(void)printf("        --%s) found='", option->name);
	if (strcmp(at, "FILE") == 0)
		(void)fputs(at, stdout);
	for (; strchr(at, '|') != NULL; at = strchr(at, '|') + 1)
		(void)printf("%.*s ", (int)strcspn(at, "|"), at);
	(void)printf("%s' ;;\n", at == option->value ? "" : at);
}

static void
put_command(const struct command *command)
{
	bool has_second = command->words[first_len(command)] != '\0';

	(void)printf("    '%s'%s%s%s)\n        found='", command->words,
	    has_second ? "" : "|'", has_second ? "" : command->words,
	    has_second ? "" : " '*");
	if (strcmp(command->operand, "FILE") == 0)
		(void)fputs("FILE ", stdout);
	else if (strchr(command->operand, '|') != NULL ||
		 strcmp(command->operand, "bash") == 0)
		(void)printf("%s ", command->operand);
	for (const struct command_option *o = command->options; o->name != NULL;
	     o++)
		(void)printf("--%s ", o->name);
	(void)fputs("--config --help'\n        case $before in\n", stdout);
	for (const struct command_option *o = command->options; o->name != NULL;
	     o++)
		if (o->value != NULL)
			put_values(o);
	(void)fputs("        esac ;;\n", stdout);
}

/* The words that may follow the first word of `command`. */
static void
put_group(const struct command *command)
{
	int len = first_len(command);

	(void)printf("    %.*s) found='", len, command->words);
	for (const struct command *c = command; c->words != NULL; c++)
		if (first_len(c) == len &&
		    strncmp(c->words, command->words, (size_t)len) == 0)
			(void)printf("%s ", &c->words[len + 1]);
	(void)fputs("' ;;\n", stdout);
}

enum status
cmd_completion(const struct call *call, struct err *err)
{
	if (strcmp(call->operand, "bash") != 0)
		return command_misused(call, err, "it is for bash alone");
	(void)fputs(begin, stdout);
	for (const struct command *c = commands; c->words != NULL; c++)
		put_command(c);
	for (const struct command *c = commands; c->words != NULL; c++)
		if (is_first(c) && c->words[first_len(c)] != '\0')
			put_group(c);
	(void)fputs("    *) found='", stdout);
	for (const struct command *c = commands; c->words != NULL; c++)
		if (is_first(c))
			(void)printf("%.*s ", first_len(c), c->words);
	(void)fputs("--config --help --version' ;;\n", stdout);
	(void)fputs(end, stdout);
	return STATUS_DONE;
}
