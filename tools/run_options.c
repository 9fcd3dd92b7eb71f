/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run_options.c - one table: option, environment variable, help, and how to read the value.
 *
 * An option --foo-bar is also --foo_bar, takes its value as "--foo-bar x" or "--foo-bar=x", and its
 * default from PET_FOO_BAR. That is read last, and only for options that the command line does not
 * give: where it does, it does not matter what the variable says. What follows the program's name is
 * the program's. */
#include "run_options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "near.h"

typedef bool (*reader)(run_options *o, const char *name, const char *value);

typedef struct option {
    const char *name;
    const char *value; /* NULL: a switch */
    const char *what;  /* NULL: known to torchrun, not to us yet */
    reader read;
    const char
        *ours;   /* of an option not supported yet: the value that says what we do; NULL: none */
    char letter; /* its short form, or 0 */
} option;

__attribute__((format(printf, 2, 3))) static bool wrong(run_options *o, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(o->words, sizeof o->words, fmt, args);
    va_end(args);
    return false;
}

/* ---- values ------------------------------------------------------------------------------------ */

static bool read_int(const char *text, long min, long max, int *out)
{
    char *end = NULL;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        return false;
    *out = (int)value;
    return true;
}

static bool read_switch(run_options *o, const char *name, const char *value, bool *out)
{
    int number = 1;

    if (value != NULL && !read_int(value, 0, 1, &number))
        return wrong(o, "%s is '%s', but must be 0 or 1", name, value);
    *out = number != 0;
    return true;
}

static int n_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool read_nproc(run_options *o, const char *name, const char *value)
{
    if (strcmp(value, "cpu") == 0 || strcmp(value, "auto") == 0) {
        o->nproc = n_cpus();
        return true;
    }
    if (!read_int(value, 1, INT_MAX, &o->nproc))
        return wrong(o, "%s is '%s', but must be a number of processes, 'cpu' or 'auto'", name,
                     value);
    return true;
}

static bool read_nnodes(run_options *o, const char *name, const char *value)
{
    const char *colon = strchr(value, ':');
    char first[16] = "";
    int min = 0;
    int max = 0;

    if (colon != NULL && (size_t)(colon - value) < sizeof first) {
        memcpy(first, value, (size_t)(colon - value));
        if (!read_int(first, 1, INT_MAX, &min) || !read_int(colon + 1, min, INT_MAX, &max))
            min = 0;
    } else if (read_int(value, 1, INT_MAX, &min)) {
        max = min;
    }
    if (min < 1 && colon == NULL)
        return wrong(o, "%s is '%s', but must be a number of hosts, 1 or more", name, value);
    if (min < 1 || min != max)
        return wrong(o, "%s is '%s': elastic sizes are not supported yet\n  next: give one number",
                     name, value);
    o->nnodes = min;
    return true;
}

static bool read_node_rank(run_options *o, const char *name, const char *value)
{
    if (!read_int(value, 0, INT_MAX, &o->node_rank))
        return wrong(o, "%s is '%s', but must be a number, 0 or more", name, value);
    return true;
}

/* "[fd99::10]" is how an address is written before a port; alone it has no brackets. */
static bool read_addr(run_options *o, const char *name, const char *value)
{
    const size_t length = strlen(value);

    if (length == 0)
        return wrong(o, "%s is empty", name);
    o->master_addr = value;
    if (value[0] == '[' && value[length - 1] == ']' && strchr(value, ':') != NULL && length < sizeof o->bare_addr) {
        snprintf(o->bare_addr, sizeof o->bare_addr, "%.*s", (int)length - 2, value + 1);
        o->master_addr = o->bare_addr;
    }
    return true;
}

static bool read_port(run_options *o, const char *name, const char *value)
{
    if (!read_int(value, 0, 65535, &o->master_port))
        return wrong(o, "%s is '%s', but must be a port, 0 .. 65535", name, value);
    return true;
}

static bool read_id(run_options *o, const char *name, const char *value)
{
    (void)name;
    o->rdzv_id = value[0] != '\0' && strcmp(value, "none") != 0 ? value : NULL;
    return true;
}

static bool read_standalone(run_options *o, const char *name, const char *value)
{
    return read_switch(o, name, value, &o->standalone);
}

static bool read_no_python(run_options *o, const char *name, const char *value)
{
    return read_switch(o, name, value, &o->no_python);
}

static bool read_on_failure(run_options *o, const char *name, const char *value)
{
    o->keep = strcmp(value, "keep") == 0;
    if (!o->keep && strcmp(value, "kill") != 0)
        return wrong(o, "%s is '%s', but must be 'kill' or 'keep'", name, value);
    return true;
}

static bool read_replace(run_options *o, const char *name, const char *value)
{
    if (!read_int(value, 0, INT_MAX, &o->replacements))
        return wrong(o, "%s is '%s', but must be a number of processes, 0 or more", name, value);
    return true;
}

static bool read_shutdown(run_options *o, const char *name, const char *value)
{
    char *end = NULL;
    double seconds = strtod(value, &end);

    if (end == value || *end != '\0' || !(seconds >= 0 && seconds <= 1e6))
        return wrong(o, "%s is '%s', but must be seconds, 0 .. 1000000", name, value);
    o->shutdown_ms = (int64_t)(seconds * 1000);
    if (o->shutdown_ms == 0)
        o->shutdown_ms = 1; /* 0 would mean the default */
    return true;
}

/* ---- the table --------------------------------------------------------------------------------- */

static const option options[] = {
    { "nproc-per-node", "N", "processes on this host: a number, or 'cpu', 'auto' (1)", read_nproc,
      NULL, 'n' },
    { "nnodes", "N", "hosts of the job (1)", read_nnodes, NULL, 0 },
    { "node-rank", "R", "which of them this one is; host 0 serves the store (0)", read_node_rank,
      NULL, 0 },
    { "master-addr", "HOST", "name or address of host 0 (127.0.0.1)", read_addr, NULL, 0 },
    { "master-port", "PORT", "the store's port (any free one; 29500 with several hosts)", read_port,
      NULL, 0 },
    { "standalone", NULL, "one host, free port, whatever else is said", read_standalone, NULL, 0 },
    { "on-failure", "kill|keep", "when a rank fails: end all others, or let them go on (kill)", read_on_failure, NULL, 0 },
    { "replace", "N", "with keep: start up to N processes in the places of those that fail (0)", read_replace, NULL, 0 },
    { "rdzv-id", "ID", "name of the job (random)", read_id, NULL, 0 },
    { "shutdown-timeout", "S", "seconds between SIGTERM and SIGKILL (30)", read_shutdown, NULL, 0 },
    { "no-python", NULL, "execute the program itself, even if its name ends in .py", read_no_python,
      NULL, 0 },
    { "rdzv-backend", "X", NULL, NULL, "static", 0 },
    { "rdzv-endpoint", "X", NULL, NULL, NULL, 0 },
    { "rdzv-conf", "X", NULL, NULL, NULL, 0 },
    { "max-restarts", "X", NULL, NULL, "0", 0 },
    { "monitor-interval", "X", NULL, NULL, NULL, 0 },
    { "start-method", "X", NULL, NULL, "spawn", 0 },
    { "event-log-handler", "X", NULL, NULL, "null", 0 },
    { "role", "X", NULL, NULL, "default", 0 },
    { "module", NULL, NULL, NULL, "0", 'm' },
    { "run-path", NULL, NULL, NULL, "0", 0 },
    { "log-dir", "X", NULL, NULL, NULL, 0 },
    { "redirects", "X", NULL, NULL, "0", 'r' },
    { "tee", "X", NULL, NULL, "0", 't' },
    { "local-addr", "X", NULL, NULL, NULL, 0 },
    { "local-ranks-filter", "X", NULL, NULL, NULL, 0 },
    { "duplicate-stdout-filters", "X", NULL, NULL, NULL, 0 },
    { "duplicate-stderr-filters", "X", NULL, NULL, NULL, 0 },
    { "logs-specs", "X", NULL, NULL, NULL, 0 },
    { "numa-binding", "X", NULL, NULL, NULL, 0 },
    { "signals-to-handle", "X", NULL, NULL, "SIGTERM,SIGINT,SIGHUP,SIGQUIT", 0 },
    { "virtual-local-rank", NULL, NULL, NULL, "0", 0 },
};
enum { N_OPTIONS = sizeof options / sizeof options[0], NAME_MAX_BYTES = NEAR_WORD_MAX };

_Static_assert((int)N_OPTIONS <= (int)RUN_OPTIONS_MAX, "run_options.given has a place for each");

void run_options_help(FILE *out)
{
    char left[NAME_MAX_BYTES];
    char letter[8];
    int i;

    fprintf(out, "usage: tutti run [options] program [arguments]\n\n");
    for (i = 0; i < N_OPTIONS && options[i].what != NULL; i++) {
        letter[0] = '\0';
        if (options[i].letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", options[i].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, options[i].name,
                 options[i].value != NULL ? " " : "",
                 options[i].value != NULL ? options[i].value : "");
        fprintf(out, "  %-24s %s\n", left, options[i].what);
    }
    fputs("\nDefaults come from PET_NPROC_PER_NODE and so on. In arguments, ${local_rank} becomes "
          "the\n"
          "local rank. The exit code is that of the first rank that failed, 128 plus the number of "
          "the\n"
          "signal that ended it, 127 if the program cannot be run, or 1 if output was lost. With\n"
          "--on-failure=keep it is 0 if all survivors ended well: ranks that were not the first to fail,\n"
          "not ended by a signal and not replaced. A report tells of the others. A replacement finds\n"
          "TUTTI_REPLACEMENT set, and comes in by tutti_join_group(). Ranks that a signal has stopped,\n"
          "and that are left when all others have ended, are named every 10 s; with\n"
          "--on-failure=keep they are ended after the shutdown time-out, else they are waited for.\n"
          "\nAll ranks share standard input: what one reads, no other gets. Their output comes out "
          "in\n"
          "whole lines behind \"[default0]:\" and so on; a line is cut after every 16 KiB.\n",
          out);
}

static const option *find_option(const char *name)
{
    int i;

    for (i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

/* The option that was probably meant, or NULL: one that begins so, or is close. */
static const option *nearest(const char *name)
{
    const option *found = NULL;
    int best = near_limit(name);
    int i;

    for (i = 0; i < N_OPTIONS && options[i].what != NULL; i++) {
        int d = near_distance(name, options[i].name);

        if (d < best) {
            best = d;
            found = &options[i];
        }
    }
    return found;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Torchrun takes it and we do not, unless it asks for what we do anyway. */
static bool read_unsupported(run_options *o, const option *opt, const char *name, const char *value)
{
    if (value != NULL && opt->ours != NULL && strcmp(value, opt->ours) == 0)
        return true;
    if (value != NULL && opt->ours != NULL)
        return wrong(o, "option '%s' is not supported yet, but for the value '%s'", name,
                     opt->ours);
    if (strcmp(opt->name, "rdzv-endpoint") == 0)
        return wrong(o, "option '%s' is not supported yet\n  next: name host 0 by --master-addr and --master-port, or PET_MASTER_ADDR "
                        "and PET_MASTER_PORT, and all hosts by --nnodes and --node-rank", name);
    return wrong(o, "option '%s' is not supported yet", name);
}

static bool read_value(run_options *o, const option *opt, const char *name, const char *value)
{
    if (opt->what == NULL)
        return read_unsupported(o, opt, name, value);
    return opt->read(o, name, value);
}

/* "PET_NPROC_PER_NODE" of "nproc-per-node". */
static void write_as_variable(const char *option_name, char out[NAME_MAX_BYTES])
{
    char *c;

    snprintf(out, NAME_MAX_BYTES, "PET_%s", option_name);
    for (c = out; *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

static bool is_variable(const char *name)
{
    char known[NAME_MAX_BYTES];
    int i;

    for (i = 0; i < N_OPTIONS; i++) {
        write_as_variable(options[i].name, known);
        if (strcmp(known, name) == 0)
            return true;
    }
    return false;
}

/* The option whose variable was probably meant, or NULL. */
static const option *nearest_variable(const char *name)
{
    char lower[NAME_MAX_BYTES];
    char *c;

    snprintf(lower, sizeof lower, "%s", name + strlen("PET_"));
    for (c = lower; *c != '\0'; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return nearest(lower);
}

/* A variable that begins as those of options do, and is none: it would change nothing, and nothing would say so. */
static void tell_unknown(const char *entry)
{
    char name[NAME_MAX_BYTES], meant[NAME_MAX_BYTES] = "";
    const int length = (int)strcspn(entry, "=");
    const option *near;

    if (strncmp(entry, "PET_", strlen("PET_")) != 0 || length >= NAME_MAX_BYTES)
        return;
    snprintf(name, sizeof name, "%.*s", length, entry);
    if (is_variable(name))
        return;
    near = nearest_variable(name);
    if (near != NULL)
        write_as_variable(near->name, meant);
    fprintf(stderr, "tutti run: environment variable %s is unknown and changes nothing%s%s%s\n", name,
            near != NULL ? "\n  next: did you mean " : "", meant, near != NULL ? "?" : "");
}

/* For the options that the command line has not given. */
static bool read_environment(run_options *o)
{
    char name[NAME_MAX_BYTES];
    const char *value;
    char **entry;
    int i;

    for (entry = environ; entry != NULL && *entry != NULL; entry++)
        tell_unknown(*entry);
    for (i = 0; i < N_OPTIONS; i++) {
        if (o->given[i])
            continue;
        write_as_variable(options[i].name, name);
        value = getenv(name);
        if (value != NULL && value[0] != '\0' && !read_value(o, &options[i], name, value))
            return false;
    }
    return true;
}

static bool unknown(run_options *o, const char *arg, const char *name)
{
    const option *near = nearest(name);

    if (near != NULL)
        return wrong(o, "unknown option '%s'\n  next: did you mean '--%s'?", arg, near->name);
    return wrong(o, "unknown option '%s'\n  next: tutti run --help", arg);
}

/* An option with a value written behind it (or NULL), else the next word; *at is then its last word. */
static bool read_with_value(run_options *o, const option *opt, const char *shown, const char *value,
                            int argc, char **argv, int *at)
{
    if (opt->value == NULL && value != NULL)
        return wrong(o, "option '%s' takes no value", shown);
    if (opt->value != NULL && value == NULL) {
        if (*at + 1 >= argc)
            return wrong(o, "option '%s' needs a value", shown);
        value = argv[++*at];
    }
    o->given[opt - options] = true;
    return read_value(o, opt, shown, value);
}

/* "-r", "-r 3", "-r3". */
static bool read_short(run_options *o, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];
    char shown[3] = { '-', arg[1], '\0' };
    int i;

    for (i = 0; i < N_OPTIONS; i++)
        if (options[i].letter == arg[1])
            return read_with_value(o, &options[i], shown, arg[2] != '\0' ? arg + 2 : NULL, argc,
                                   argv, at);
    return wrong(o, "unknown option '%.100s'\n  next: tutti run --help", arg);
}

/* One option at argv[*at]; *at then stands on its last word. */
static bool read_option(run_options *o, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];
    const char *equals = strchr(arg, '=');
    size_t len = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
    char name[NAME_MAX_BYTES] = "";
    char shown[NAME_MAX_BYTES + 2];
    const option *opt;
    char *c;

    if (strncmp(arg, "--", 2) != 0)
        return read_short(o, argc, argv, at);
    if (len - 2 >= sizeof name)
        return wrong(o, "unknown option '%.100s'\n  next: tutti run --help", arg);
    memcpy(name, arg + 2, len - 2);
    for (c = name; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    opt = find_option(name);
    if (opt == NULL)
        return unknown(o, arg, name);
    snprintf(shown, sizeof shown, "--%s", name);
    return read_with_value(o, opt, shown, equals != NULL ? equals + 1 : NULL, argc, argv, at);
}

bool run_options_read(run_options *o, int argc, char **argv)
{
    int i;

    *o = (run_options){ .nproc = 1, .nnodes = 1, .master_port = -1 };
    for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            o->help = true;
            return true;
        }
        if (!read_option(o, argc, argv, &i))
            return false;
    }
    if (!read_environment(o))
        return false;
    if (i >= argc)
        return wrong(o, "no program to run\n  next: tutti run --help");
    o->program = argv + i;
    return true;
}
