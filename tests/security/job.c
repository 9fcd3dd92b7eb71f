/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.c - the job that is attacked.
 *
 * A small network learns drawn numbers, on every rank its own, and gradients are averaged over TCP in every step. Rank 0
 * tells the others with each step whether there is one more. In the job's private directory lie: log (all that it
 * writes), rank-N (its pid, and where the store is), stop (made by who attacks), steps (so far), sum (at the end: steps,
 * and the bits of all parameters as one number). Two jobs with equal numbers of steps have equal sums. */
#include "attacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tutti/train.h>
#include <tutti/tutti.h>
#include "base/fnv.h"
#include "transport/card.h"

enum { IN = 64, HIDDEN = 48, CLASSES = 10, BATCH = 16, START_MS = 60000, END_MS = 60000, LOG_BYTES = 4000 };

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void rest_ms(long ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    nanosleep(&time, NULL);
}

/* ---- a rank -------------------------------------------------------------------------------------------- */

static void path_of(const char *dir, const char *name, int number, char out[PATH_BYTES])
{
    if (number < 0)
        snprintf(out, PATH_BYTES, "%.200s/%s", dir, name);
    else
        snprintf(out, PATH_BYTES, "%.200s/%s-%d", dir, name, number);
}

/* Whole or not at all, for those who look meanwhile. */
static bool write_file(const char *dir, const char *name, int number, const char *text)
{
    char  path[PATH_BYTES], fresh[PATH_BYTES + 8];
    FILE *file;
    bool  ok;

    path_of(dir, name, number, path);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    file = fopen(fresh, "we");
    if (file == NULL)
        return false;
    ok = fputs(text, file) >= 0;
    return fclose(file) == 0 && ok && rename(fresh, path) == 0;
}

static bool has_file(const char *dir, const char *name)
{
    char path[PATH_BYTES];

    path_of(dir, name, -1, path);
    return access(path, F_OK) == 0;
}

static bool tell_where(const char *dir)
{
    const char *store_port = getenv("MASTER_PORT"), *file = getenv("TUTTI_SECRET_FILE");
    char        text[PATH_BYTES + 64];

    snprintf(text, sizeof text, "%ld %s %.200s\n", (long)getpid(), store_port != NULL ? store_port : "0",
             file != NULL ? file : "-");
    return write_file(dir, "rank", tutti_get_rank(NULL), text);
}

/* 1: one more step; 0: the end. */
static tutti_status decide(const char *dir, long step, long steps, int32_t *more_out)
{
    char text[32];

    *more_out = steps > 0 ? step < steps : !has_file(dir, "stop");
    if (tutti_get_rank(NULL) == 0 && step % 16 == 0) {
        snprintf(text, sizeof text, "%ld\n", step);
        write_file(dir, "steps", -1, text);
    }
    return tutti_broadcast(TUTTI_SPAN(more_out, 1), 0, NULL);
}

static tutti_module *make_net(void)
{
    tutti_module *net = tutti_sequential();

    tutti_module_add(net, "first", tutti_linear(IN, HIDDEN, true));
    tutti_module_add(net, "relu", tutti_relu());
    tutti_module_add(net, "second", tutti_linear(HIDDEN, CLASSES, true));
    tutti_module_add(net, "log_softmax", tutti_log_softmax(1));
    return net;
}

static tutti_status learn(tutti_ddp *ddp, tutti_optim *sgd, tutti_generator *numbers)
{
    tutti_tensor *x, *y;
    tutti_status  st;

    tutti_scope_begin();
    x = tutti_tensor_randn(TUTTI_F32, 2, (const int64_t[]){ BATCH, IN }, numbers);
    y = tutti_tensor_randint(0, CLASSES, 1, (const int64_t[]){ BATCH }, numbers);
    tutti_optim_zero_grad(sgd);
    st = tutti_tensor_backward(tutti_tensor_nll_loss(tutti_ddp_forward(ddp, x), y, NULL));
    if (st == TUTTI_OK)
        st = tutti_optim_step(sgd);
    tutti_scope_end();
    return st;
}

static uint64_t sum_of(tutti_module *net)
{
    tutti_tensor *const *params;
    uint64_t             sum = TTI_FNV_BEGIN;
    int                  n = 0, i;

    params = tutti_module_parameters(net, &n);
    for (i = 0; i < n; i++)
        sum = tti_fnv(sum, tutti_tensor_data(params[i]), (size_t)tutti_tensor_numel(params[i]) * sizeof(float));
    return sum;
}

static tutti_status train(const char *dir, long steps)
{
    tutti_sgd_options    options = TUTTI_SGD_OPTIONS;
    tutti_generator     *numbers = NULL;
    tutti_module        *net;
    tutti_ddp           *ddp = NULL;
    tutti_optim         *sgd = NULL;
    tutti_tensor *const *params;
    tutti_status         st;
    char                 text[64];
    int32_t              more = 1;
    long                 step = 0;
    int                  n = 0;

    tutti_manual_seed(7);
    net = make_net();
    st = tutti_ddp_create(net, NULL, &ddp);
    if (st == TUTTI_OK)
        numbers = tutti_generator_create((uint64_t)(100 + tutti_get_rank(NULL)));
    params = tutti_module_parameters(net, &n);
    options.lr = 0.05;
    sgd = tutti_sgd(params, n, &options);
    while (st == TUTTI_OK) {
        st = decide(dir, step, steps, &more);
        if (st != TUTTI_OK || !more)
            break;
        st = learn(ddp, sgd, numbers);
        step++;
    }
    snprintf(text, sizeof text, "%ld %016" PRIx64 "\n", step, sum_of(net));
    if (st == TUTTI_OK && tutti_get_rank(NULL) == 0 && !write_file(dir, "sum", -1, text))
        st = TUTTI_E_IO;
    tutti_generator_free(numbers);
    tutti_optim_free(sgd);
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    return st;
}

int job_rank(const char *dir, long steps)
{
    if (tutti_init_process_group(NULL) == TUTTI_OK && tell_where(dir) && train(dir, steps) == TUTTI_OK &&
        tutti_destroy_process_group(NULL) == TUTTI_OK)
        return 0;
    fprintf(stderr, "the job under attack: %s\n", tutti_last_error());
    return 1;
}

/* ---- who starts it ------------------------------------------------------------------------------------- */

static _Noreturn void become_job(const job *j, long steps)
{
    const struct rlimit whole = { RLIM_INFINITY, RLIM_INFINITY };
    char                log[PATH_BYTES], number[24];
    int                 fd;

    path_of(j->dir, "log", -1, log);
    fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    if (j->dumps && (chdir(j->dir) != 0 || setrlimit(RLIMIT_CORE, &whole) != 0))
        _exit(125);
    snprintf(number, sizeof number, "%ld", steps);
    setenv("TUTTI_TRANSPORT", "tcp", 1);
    setenv("TUTTI_LOG", "debug", 1);
    unsetenv("TUTTI_SECRET_FILE");
    execl(j->tutti, j->tutti, "run", "--standalone", "--nproc-per-node=3", "--", j->self, "--train", j->dir, number, (char *)NULL);
    _exit(127);
}

static bool read_rank(job *j, int rank)
{
    char     path[PATH_BYTES];
    FILE    *file;
    long     pid = 0;
    unsigned tcp_port = 0;
    int      n;

    path_of(j->dir, "rank", rank, path);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    n = fscanf(file, "%ld %u %255s", &pid, &tcp_port, j->secret_file);
    fclose(file);
    j->ranks[rank] = (pid_t)pid;
    j->store_port = (uint16_t)tcp_port;
    return n == 3 && pid > 0;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/* What every member leaves in the store: where it listens, and, rank 0's, the number of its world. */
static bool read_cards(job *j, tutti_store *store)
{
    tutti_store_keys keys = { 0 };
    tti_card         card;
    int              found = 0;
    size_t           i;

    if (tutti_store_list_keys(store, &keys) != TUTTI_OK)
        return false;
    for (i = 0; i < keys.n; i++) {
        const char *at = strstr(keys.names[i], "/card/");
        tutti_bytes value = { 0 };
        int         rank = at != NULL ? atoi(at + 6) : -1;

        if (rank < 0 || rank >= RANKS || tutti_store_get(store, keys.names[i], 0, &value) != TUTTI_OK)
            continue;
        if (value.size == sizeof card) {
            memcpy(&card, value.data, sizeof card);
            j->peer_ports[rank] = card.tcp_port;
            if (rank == 0)
                memcpy(j->scope, card.world, sizeof j->scope);
            found++;
        }
        tutti_bytes_free(&value);
    }
    tutti_store_keys_free(&keys);
    return found == RANKS;
}

static bool look_inside(job *j)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    tti_secret              secret = { .present = false };
    bool                    ok;

    setenv("TUTTI_SECRET_FILE", j->secret_file, 1);
    options.host = "127.0.0.1";
    options.port = j->store_port;
    ok = tti_secret_load(NULL, &secret) == TUTTI_OK && secret.present && tutti_tcp_store_open(&options, &store) == TUTTI_OK &&
         read_cards(j, store);
    if (ok)
        tti_secret_reveal(&secret, j->key);
    tutti_store_close(store);
    unsetenv("TUTTI_SECRET_FILE");
    return ok;
}

static void print_log(const job *j)
{
    char  path[PATH_BYTES], line[512];
    FILE *file;

    path_of(j->dir, "log", -1, path);
    file = fopen(path, "re");
    if (file != NULL)
        (void)fseek(file, -(long)LOG_BYTES, SEEK_END);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fprintf(stderr, "  %s", line);
    if (file != NULL)
        fclose(file);
}

static bool give_up(job *j, const char *what)
{
    fprintf(stderr, "the job %s: %s\n", what, tutti_last_error());
    print_log(j);
    kill(j->launcher, SIGTERM);
    waitpid(j->launcher, NULL, 0);
    return false;
}

bool job_start(job *j, long steps)
{
    const int64_t until = now_ms() + START_MS;
    int           rank;

    snprintf(j->dir, sizeof j->dir, "/tmp/tutti-attacks-XXXXXX");
    if (mkdtemp(j->dir) == NULL)
        return false;
    j->launcher = fork();
    if (j->launcher == 0)
        become_job(j, steps);
    for (rank = 0; rank < RANKS && j->launcher > 0;) {
        if (read_rank(j, rank))
            rank++;
        else if (has_ended(j->launcher) || now_ms() > until)
            return give_up(j, "did not begin");
        else
            rest_ms(10);
    }
    if (steps > 0)
        return j->launcher > 0;
    return look_inside(j) || give_up(j, "cannot be looked into");
}

bool job_lives(const job *j, long *steps_out)
{
    char  path[PATH_BYTES];
    FILE *file;
    int   rank;

    *steps_out = 0;
    path_of(j->dir, "steps", -1, path);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%ld", steps_out) != 1)
            *steps_out = 0;
        fclose(file);
    }
    for (rank = 0; rank < RANKS; rank++)
        if (kill(j->ranks[rank], 0) != 0)
            return false;
    return !has_ended(j->launcher);
}

void job_remove(const job *j)
{
    static const char *const names[] = { "log", "stop", "steps", "sum" };
    char                     path[PATH_BYTES];
    size_t                   i;

    for (i = 0; i < sizeof names / sizeof names[0] + RANKS; i++) {
        path_of(j->dir, i < RANKS ? "rank" : names[i - RANKS], i < RANKS ? (int)i : -1, path);
        unlink(path);
    }
    if (find_core(j->dir, path))
        unlink(path);
    rmdir(j->dir);
}

bool find_core(const char *dir, char path_out[PATH_BYTES])
{
    DIR           *files = opendir(dir);
    struct dirent *file;
    bool           found = false;

    while (files != NULL && !found && (file = readdir(files)) != NULL) {
        found = strncmp(file->d_name, "core", 4) == 0;
        if (found)
            snprintf(path_out, PATH_BYTES, "%.180s/%.60s", dir, file->d_name);
    }
    if (files != NULL)
        closedir(files);
    return found;
}

void job_crash(job *j, int rank, char core_out[PATH_BYTES])
{
    const int64_t until = now_ms() + END_MS;

    kill(j->ranks[rank], SIGABRT);
    while (!has_ended(j->launcher) && now_ms() < until)
        rest_ms(10);
    if (!has_ended(j->launcher))
        kill(j->launcher, SIGKILL);
    waitpid(j->launcher, NULL, 0);
    if (!find_core(j->dir, core_out))
        core_out[0] = '\0';
}

bool job_stop(job *j, int64_t patience_ms, long *steps_out, uint64_t *sum_out)
{
    const int64_t until = now_ms() + patience_ms;
    char          path[PATH_BYTES];
    FILE         *file;
    int           status = -1, n = 0;

    write_file(j->dir, "stop", -1, "");
    while (!has_ended(j->launcher) && now_ms() < until)
        rest_ms(10);
    if (!has_ended(j->launcher))
        return give_up(j, "does not end");
    waitpid(j->launcher, &status, 0);
    path_of(j->dir, "sum", -1, path);
    file = fopen(path, "re");
    if (file != NULL) {
        n = fscanf(file, "%ld %" SCNx64, steps_out, sum_out);
        fclose(file);
    }
    if (status != 0 || n != 2) {
        fprintf(stderr, "the job ended with status %x\n", (unsigned)status);
        print_log(j);
    }
    job_remove(j);
    return status == 0 && n == 2;
}
