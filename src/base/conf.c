#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/conf.h"
#include "base/err.h"

enum { MAX_LINE = 4096, MAX_NAME = 64, MAX_ITEMS = 64 };

#define ENV_PREFIX "POSTRIDER_"

/* Largest first, so that the first that divides a time writes it shortest. */
static const struct {
	const char *suffix;
	usec_t length;
} units[] = {
	{ "d", USEC_PER_SEC * 3600 * 24 },
	{ "h", USEC_PER_SEC * 3600 },
	{ "m", USEC_PER_SEC * 60 },
	{ "s", USEC_PER_SEC },
	{ "ms", USEC_PER_MS },
};

enum { NUNITS = sizeof(units) / sizeof(units[0]) };

/* One call of conf_load(). */
struct load {
	void *into;
	const struct conf_item *items;
	struct err *err;
};

static void *
field(void *into, const struct conf_item *item)
{
	return (char *)into + item->offset;
}

static bool
parse_int(const char *text, int64_t *out)
{
	char *end;
	long long value;

	/* strtoll() would also take blanks and a plus. */
	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0')
		return false;
	*out = value;
	return true;
}

int64_t
conf_parse_time(const char *text)
{
	char digits[24];
	size_t n = strspn(text, "0123456789");
	int64_t count, time;

	if (n == 0 || n >= sizeof(digits))
		return -1;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (!parse_int(digits, &count))
		return -1;
	for (int i = 0; i < NUNITS; i++) {
		if (strcmp(text + n, units[i].suffix) != 0)
			continue;
		if (__builtin_mul_overflow(count, units[i].length, &time))
			return -1;
		return time;
	}
	return -1;
}

static void
add_time(struct buf *out, int64_t time)
{
	for (int i = 0; i < NUNITS; i++)
		if (time != 0 && time % units[i].length == 0) {
			buf_printf(out, "%" PRId64 "%s", time / units[i].length,
			    units[i].suffix);
			return;
		}
	buf_printf(out, "%" PRId64 "ms", time / USEC_PER_MS);
}

/* In words, what `item` takes. */
static void
add_what(struct buf *out, const struct conf_item *item)
{
	switch (item->kind) {
	case CONF_TEXT:
		buf_puts(out, "a text");
		break;
	case CONF_INT:
		buf_printf(out, "a whole number from %" PRId64 " to %" PRId64,
		    item->min, item->max);
		break;
	case CONF_TIME:
		buf_puts(out, "a time such as 250ms, 10s, 5m, 2h or 7d, from ");
		add_time(out, item->min);
		buf_puts(out, " to ");
		add_time(out, item->max);
		break;
	case CONF_BOOL:
		buf_puts(out, "true or false");
		break;
	}
}

static int
set_text(char **text, const char *value, struct err *err)
{
	char *copy = strdup(value);

	if (copy == NULL)
		return err_set(err, ERR_NOMEM, "settings: out of memory");
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = copy;
	return 0;
}

static bool
set_number(void *at, const struct conf_item *item, const char *value)
{
	int64_t number;

	if (item->kind == CONF_TIME)
		number = conf_parse_time(value);
	else if (!parse_int(value, &number))
		return false;
	if (number < item->min || number > item->max)
		return false;
	memcpy(at, &number, sizeof(number));
	return true;
}

static bool
set_bool(void *at, const char *value)
{
	bool yes = strcmp(value, "true") == 0;

	if (!yes && strcmp(value, "false") != 0)
		return false;
	memcpy(at, &yes, sizeof(yes));
	return true;
}

/*
 * Give `item` a value that stands at `where`.  The value is not in the error's
 * text: it may be a secret, or the secret of a neighbour, misplaced.
 */
static int
set(const struct load *load, const struct conf_item *item, const char *value,
    const char *where)
{
	void *at = field(load->into, item);
	struct buf what = { 0 };
	bool ok = false;

	switch (item->kind) {
	case CONF_TEXT:
		return set_text(at, value, load->err);
	case CONF_INT:
	case CONF_TIME:
		ok = set_number(at, item, value);
		break;
	case CONF_BOOL:
		ok = set_bool(at, value);
		break;
	}
	if (ok)
		return 0;
	add_what(&what, item);
	(void)err_set(load->err, ERR_REFUSED, "%s: %s takes %s", where,
	    item->name, buf_text(&what));
	buf_fini(&what);
	return -1;
}

static const struct conf_item *
find(const struct conf_item *items, const char *name)
{
	for (; items->name != NULL; items++)
		if (strcmp(items->name, name) == 0)
			return items;
	return NULL;
}

static int
load_initial(const struct load *load)
{
	for (const struct conf_item *i = load->items; i->name != NULL; i++) {
		assert(i->initial != NULL && strlen(i->name) < MAX_NAME);
		assert(i - load->items < MAX_ITEMS);
		if (set(load, i, i->initial, "initial value") != 0) {
			assert(load->err->code == ERR_NOMEM);
			return -1;
		}
	}
	return 0;
}

/* Cut blanks off both ends, in place. */
static char *
trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* One file, being read. */
struct reader {
	const struct load *load;
	const char *path;
	int line;
	int set_at[MAX_ITEMS]; /* in which line each item was set; 0: in none */
};

/* Note that `item` is set in this line, the first that does. */
static int
note_line(struct reader *reader, const struct conf_item *item)
{
	int *set_at = &reader->set_at[item - reader->load->items];

	if (*set_at != 0)
		return err_set(reader->load->err, ERR_REFUSED,
		    "%s:%d: %s is set in line %d already", reader->path,
		    reader->line, item->name, *set_at);
	*set_at = reader->line;
	return 0;
}

static int
load_line(struct reader *reader, char *line, const char *where)
{
	const struct load *load = reader->load;
	const struct conf_item *item;
	char *name = trim(line), *value;

	if (name[0] == '\0' || name[0] == '#')
		return 0;
	value = strchr(name, '=');
	if (value == NULL)
		return err_set(load->err, ERR_REFUSED,
		    "%s: a line is NAME = VALUE, or begins with #", where);
	*value++ = '\0';
	name = trim(name);
	item = find(load->items, name);
	if (item == NULL)
		return err_set(load->err, ERR_REFUSED,
		    "%s: no setting is called %.*s", where, MAX_NAME, name);
	if (note_line(reader, item) != 0)
		return -1;
	return set(load, item, trim(value), where);
}

static int
load_lines(const struct load *load, FILE *file, const char *path)
{
	struct reader reader = { .load = load, .path = path };
	char line[MAX_LINE], where[MAX_LINE];
	int status = 0;

	while (status == 0 && fgets(line, sizeof(line), file) != NULL) {
		(void)snprintf(
		    where, sizeof(where), "%s:%d", path, ++reader.line);
		if (strchr(line, '\n') == NULL && !feof(file))
			status = err_set(load->err, ERR_REFUSED,
			    "%s: longer than %d bytes, or not a text", where,
			    MAX_LINE);
		else
			status = load_line(&reader, line, where);
	}
	explicit_bzero(line, sizeof(line));
	if (status == 0 && ferror(file))
		return err_errno(load->err, ERR_REFUSED, "%s", path);
	return status;
}

static int
load_file(const struct load *load, const char *path)
{
	FILE *file = fopen(path, "re");
	int status;

	if (file == NULL)
		return err_errno(load->err, ERR_REFUSED, "--config %s", path);
	/* Unbuffered, so that no copy of a secret stays in the heap. */
	(void)setvbuf(file, NULL, _IONBF, 0);
	status = load_lines(load, file, path);
	(void)fclose(file);
	return status;
}

static void
env_name(char *out, const char *name)
{
	memcpy(out, ENV_PREFIX, sizeof(ENV_PREFIX));
	out += strlen(ENV_PREFIX);
	for (; *name != '\0'; name++)
		*out++ = (char)toupper((unsigned char)*name);
	*out = '\0';
}

static int
load_env(const struct load *load)
{
	char name[sizeof(ENV_PREFIX) + MAX_NAME];

	for (const struct conf_item *i = load->items; i->name != NULL; i++) {
		const char *value;

		env_name(name, i->name);
		value = getenv(name);
		if (value != NULL && set(load, i, value, name) != 0)
			return -1;
	}
	return 0;
}

/*
 * The setting that `arg`, as --max-in-flight=N, names; NULL if none.  Dashes
 * stand for underscores, and only they do: one spelling is enough.
 */
static const struct conf_item *
find_option(const struct conf_item *items, const char *arg)
{
	char name[MAX_NAME];
	size_t n = strcspn(arg, "=");

	if (strncmp(arg, "--", 2) != 0 || n - 2 >= sizeof(name))
		return NULL;
	memcpy(name, arg + 2, n - 2);
	name[n - 2] = '\0';
	if (strchr(name, '_') != NULL)
		return NULL;
	for (char *p = name; *p != '\0'; p++)
		if (*p == '-')
			*p = '_';
	return find(items, name);
}

static int
load_option(const struct load *load, const char *arg)
{
	const struct conf_item *item = find_option(load->items, arg);
	int n = (int)strcspn(arg, "=");
	char where[MAX_NAME + 2 + 1];

	/* Up to the "=" only: what follows may be a secret. */
	(void)snprintf(where, sizeof(where), "%.*s", n, arg);
	if (item == NULL)
		return err_set(
		    load->err, ERR_REFUSED, "%s: no such option", where);
	if (item->is_secret)
		return err_set(load->err, ERR_REFUSED,
		    "%s: a secret, which others could read on the command "
		    "line: set it in the environment or in a file",
		    where);
	if (arg[n] != '=')
		return err_set(load->err, ERR_REFUSED,
		    "%s: takes a value, as %s=VALUE", where, where);
	return set(load, item, arg + n + 1, where);
}

/* What the command line says besides settings. */
struct flags {
	struct conf_args *args;
	const char *file; /* NULL if none */
};

/* Take argv[*i] if it is no setting, with *i left at its last word. */
static bool
take_flag(struct flags *flags, int argc, char *const argv[], int *i)
{
	const char *arg = argv[*i];

	if (strcmp(arg, "-n") == 0)
		flags->args->check = true;
	else if (strcmp(arg, "--help") == 0)
		flags->args->help = true;
	else if (strcmp(arg, "--version") == 0)
		flags->args->version = true;
	else if (strncmp(arg, "--config=", 9) == 0)
		flags->file = arg + 9;
	else if (strcmp(arg, "--config") == 0)
		flags->file = *i + 1 < argc ? argv[++*i] : "";
	else
		return false;
	return true;
}

static int
load_options(const struct load *load, int argc, char *const argv[])
{
	struct conf_args ignored = { 0 };
	struct flags flags = { .args = &ignored };

	for (int i = 1; i < argc; i++)
		if (!take_flag(&flags, argc, argv, &i) &&
		    load_option(load, argv[i]) != 0)
			return -1;
	return 0;
}

int
conf_load(void *into, const struct conf_item *items, int argc,
    char *const argv[], struct conf_args *args, struct err *err)
{
	const struct load load = { into, items, err };
	struct flags flags = { .args = args };

	*args = (struct conf_args){ 0 };
	for (int i = 1; i < argc; i++)
		(void)take_flag(&flags, argc, argv, &i);
	if (load_initial(&load) != 0)
		return -1;
	if (args->help || args->version)
		return 0;
	if (flags.file != NULL && load_file(&load, flags.file) != 0)
		return -1;
	if (load_env(&load) != 0)
		return -1;
	return load_options(&load, argc, argv);
}

void
conf_fini(void *into, const struct conf_item *items)
{
	for (; items->name != NULL; items++) {
		char **text = field(into, items);

		if (items->kind != CONF_TEXT || *text == NULL)
			continue;
		explicit_bzero(*text, strlen(*text));
		free(*text);
		*text = NULL;
	}
}

static const char help_intro[] =
    "A setting some_name is taken from the command line\n"
    "(--some-name=VALUE), else from the environment\n"
    "(POSTRIDER_SOME_NAME=VALUE), else from the file that --config\n"
    "names (some_name = VALUE, once).  Other POSTRIDER_ variables are\n"
    "ignored: they may be another program's.\n"
    "\n"
    "  -n             check the settings and stop\n"
    "  --config FILE  read settings from FILE\n"
    "  --help         print this\n"
    "  --version      print the version\n"
    "\n"
    "Settings:\n";

void
conf_help(FILE *out, const struct conf_item *items)
{
	(void)fputs(help_intro, out);
	for (; items->name != NULL; items++) {
		struct buf what = { 0 };

		add_what(&what, items);
		(void)fprintf(out,
		    "  %s\n      %s\n      takes %s; initially %s%s\n",
		    items->name, items->help, buf_text(&what),
		    items->initial[0] == '\0' ? "empty" : items->initial,
		    items->is_secret ? "; not on the command line" : "");
		buf_fini(&what);
	}
}
