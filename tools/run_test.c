/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run_test.c
 * Goal    `tutti run` reads torchrun's options in all spellings, and answers wrong ones with one clear
 *         message and a non-zero code.
 * Method  the built command, with its two outputs and its exit code. Ranks are shell scripts. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TEXT_MAX = 65536 };

typedef struct result {
    int code;
    char out[TEXT_MAX]; /* what it wrote to standard output */
    char err[TEXT_MAX];
} result;

static result r; /* of the last command: the tests run one after the other */

static void read_into(FILE *file, char text[TEXT_MAX])
{
    size_t n;

    rewind(file);
    n = fread(text, 1, TEXT_MAX - 1, file);
    text[n] = '\0';
    fclose(file);
}

/* A shell command in which "tutti" and "tuttirun" are ours. */
static void run(const char *command)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    pid_t pid;
    int status = -1;

    assert_true(out != NULL && err != NULL);
    pid = fork();
    if (pid == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    r.code = WEXITSTATUS(status);
    read_into(out, r.out);
    read_into(err, r.err);
}

static void check_out(const char *command, const char *words)
{
    run(command);
    if (r.code != 0 || strstr(r.out, words) == NULL)
        fail_msg("%s: code %d, out '%s', err '%s'", command, r.code, r.out, r.err);
}

static void check_err(const char *command, int code, const char *words)
{
    run(command);
    if (r.code != code || strstr(r.err, words) == NULL)
        fail_msg("%s: code %d, out '%s', err '%s'", command, r.code, r.out, r.err);
    assert_string_equal(r.out, "");
}

static void the_command_explains_itself(void **state)
{
    (void)state;
    check_out("tutti --help", "usage: tutti COMMAND");
    check_out("tutti --version", "tutti 0.");
    check_out("tutti run --help", "--nproc-per-node N");
    check_out("tuttirun -h", "-n, --nproc-per-node N");
    check_out("tutti run --help", "or let them go on");
    check_err("tutti", 2, "usage: tutti COMMAND");
    check_out("tutti help", "usage: tutti COMMAND");
    check_out("tutti help run", "--nproc-per-node N");
    check_out("tutti run --help", "share standard input");
    check_out("tutti run --help", "--on-failure=keep they are ended after the shutdown time-out, else they are waited for.");
    check_out("tutti run --help", "16 KiB");
    check_err("tutti walk", 2, "unknown command 'walk'\n  next: tutti --help");
    check_err("tutti rnu", 2, "unknown command 'rnu'\n  next: did you mean 'run'?");
    check_err("tutti help walk", 2, "unknown command 'walk'");
}

static void options_are_spelt_in_all_ways(void **state)
{
    static const char *const spellings[] = {
        "tutti run --nproc-per-node 3 sh -c 'echo of $WORLD_SIZE'",
        "tutti run -n 3 sh -c 'echo of $WORLD_SIZE'",
        "tutti run -n3 sh -c 'echo of $WORLD_SIZE'",
        "tutti run --nproc_per_node 3 sh -c 'echo of $WORLD_SIZE'",
        "tutti run --nproc-per-node=3 sh -c 'echo of $WORLD_SIZE'",
        "tuttirun --nproc_per_node=3 -- sh -c 'echo of $WORLD_SIZE'",
        "PET_NPROC_PER_NODE=3 tuttirun sh -c 'echo of $WORLD_SIZE'",
        "PET_NPROC_PER_NODE=2 tuttirun --nproc-per-node=3 sh -c 'echo of $WORLD_SIZE'",
        "tutti run --standalone --nnodes=4 --node-rank 3 --nproc-per-node 3 --on-failure=kill "
        "--shutdown_timeout 2.5 sh -c 'echo of $WORLD_SIZE'",
        "PET_STANDALONE=1 PET_NNODES=2 tutti run --nproc-per-node 3 sh -c 'echo of $WORLD_SIZE'",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        check_out(spellings[i], "[default2]:of 3\n");
    check_out("tutti run --max-restarts=0 --rdzv-backend static -r 0 -t0 --role=default echo x",
              "[default0]:x\n");
    check_out("PET_MAX_RESTARTS=0 PET_REDIRECTS=0 PET_MODULE=0 PET_LOG_DIR= tutti run echo x",
              "[default0]:x\n");
    check_out("tutti run --nnodes=1:1 --rdzv-id=j5 sh -c 'echo id $TORCHELASTIC_RUN_ID'",
              "id j5\n");
    check_out("tutti run --standalone --rdzv-id=j6 sh -c 'echo id $TORCHELASTIC_RUN_ID'", "id j6\n");
    check_out("tutti run --nproc-per-node=cpu sh -c 'echo of $WORLD_SIZE'", "[default0]:of ");
    check_out("tutti run echo --nproc-per-node 7", "[default0]:--nproc-per-node 7\n");
    check_out("tutti run --nproc-per-node=2 echo 'dev${local_rank}'", "[default1]:dev1\n");
    check_out("PYTHON_EXEC=echo tutti run train.py x", "[default0]:-u train.py x\n");
}

static void wrong_options_get_one_message(void **state)
{
    static const struct {
        const char *command;
        const char *words;
    } rows[] = {
        { "tutti run", "no program to run" },
        { "tutti run --nproc-per-nod 2 true", "did you mean '--nproc-per-node'" },
        { "tutti run --nproc=2 true", "did you mean '--nproc-per-node'" },
        { "tutti run --frobnicate true", "unknown option '--frobnicate'" },
        { "tutti run -x true", "unknown option '-x'" },
        { "tutti run -n two true", "-n is 'two'" },
        { "tutti run --nproc-per-node", "'--nproc-per-node' needs a value" },
        { "tutti run --nproc-per-node=0 true", "--nproc-per-node is '0'" },
        { "tutti run --nproc-per-node=gpu true", "--nproc-per-node is 'gpu'" },
        { "PET_NPROC_PER_NODE=2x tutti run true", "PET_NPROC_PER_NODE is '2x'" },
        { "PET_STANDALONE=true tutti run true", "PET_STANDALONE is 'true'" },
        { "tutti run --standalone=1 true", "'--standalone' takes no value" },
        { "tutti run --nnodes=1:4 true", "elastic sizes are not supported yet" },
        { "tutti run --nnodes=4:1 true", "elastic sizes are not supported yet\n  next: give one number" },
        { "tutti run --nnodes=a true", "--nnodes is 'a', but must be a number of hosts, 1 or more\n" },
        { "tutti run --nnodes=0 true", "--nnodes is '0', but must be a number of hosts, 1 or more\n" },
        { "tutti run --node-rank=2 true", "host rank 2 of 1" },
        { "tutti run --master-port=99999 true", "--master-port is '99999'" },
        { "tutti run --on-failure=restart true", "must be 'kill' or 'keep'" },
        { "tutti run --replace=1 true", "keep is not set" },
        { "tutti run --shutdown-timeout=-1 true", "--shutdown-timeout is '-1'" },
        { "tutti run --shutdown-timeout=1e99 true", "must be seconds, 0 .. 1000000" },
        { "tutti run --max-restarts=3 true", "'--max-restarts' is not supported yet" },
        { "PET_MAX_RESTARTS=3 tutti run true", "'PET_MAX_RESTARTS' is not supported yet" },
        { "PET_LOG_DIR=/tmp tutti run true", "'PET_LOG_DIR' is not supported yet" },
        { "PET_RDZV_ENDPOINT=n1:29400 tutti run true", "'PET_RDZV_ENDPOINT' is not supported yet\n  next: name host 0 by --master-addr" },
        { "PET_RDZV_BACKEND=c10d tutti run true", "but for the value 'static'" },
        { "tutti run --rdzv_backend=c10d true", "'--rdzv-backend' is not supported yet" },
        { "tutti run --module x", "'--module' is not supported yet" },
        { "tutti run -m x", "'-m' is not supported yet" },
        { "tutti run -r 3 true", "'-r' is not supported yet" },
        { "tutti run -t3 true", "'-t' is not supported yet" },
        { "tutti run -t", "'-t' needs a value" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_err(rows[i].command, 2, rows[i].words);
        assert_int_equal(strncmp(r.err, "tutti run: ", 11), 0);
    }
}

/* What a variable says does not matter where the command line gives its option, or asks for help. */
static void the_command_line_wins(void **state)
{
    (void)state;
    check_out("PET_NPROC_PER_NODE=x tutti run -n 2 sh -c 'echo of $WORLD_SIZE'", "[default1]:of 2\n");
    check_out("PET_NNODES=x tutti run --nnodes=1 echo x", "[default0]:x\n");
    check_out("PET_NNODES=1:4 tutti run --nnodes 1 echo x", "[default0]:x\n");
    check_out("PET_STANDALONE=true tutti run --standalone echo x", "[default0]:x\n");
    check_out("PET_RDZV_BACKEND=c10d tutti run --rdzv-backend=static echo x", "[default0]:x\n");
    check_out("PET_MAX_RESTARTS=3 PET_TEE=3 tutti run --max_restarts=0 -t0 echo x", "[default0]:x\n");
    check_out("PET_NNODES=x tutti run --help", "--nproc-per-node N");
    check_out("PET_LOG_DIR=/tmp tutti run -h", "--nproc-per-node N");
    check_out("PET_LOG_DIR=/tmp tutti help run", "--nproc-per-node N");
    check_err("PET_NNODES=x tutti run --nnodes=y true", 2, "--nnodes is 'y'");
    check_err("PET_NNODES=x tutti run --nproc-per-node=2 true", 2, "PET_NNODES is 'x'");
    check_err("PET_NNODES=x tutti run true --nnodes=1", 2, "PET_NNODES is 'x'"); /* that is the program's */
}

static void a_variable_of_no_option_is_told(void **state)
{
    (void)state;
    check_err("PET_NPROC_PERNODE=2 tutti run true", 0,
              "PET_NPROC_PERNODE is unknown and changes nothing\n  next: did you mean PET_NPROC_PER_NODE?\n");
    check_err("PET_XYZZY_QWERTY=2 tutti run true", 0, "PET_XYZZY_QWERTY is unknown and changes nothing\n");
    check_out("PET_NPROC_PER_NODE=1 PET_RDZV_ID=job PET_MAX_RESTARTS=0 tutti run echo x", "[default0]:x\n");
    assert_null(strstr(r.err, "is unknown"));
}

static void programs_end_the_command(void **state)
{
    (void)state;
    check_err("tutti run no-such-program", 127, "'no-such-program' not found");
    check_err("tutti run /etc/passwd", 127, "'/etc/passwd' is not executable");
    check_err("tutti run --nproc-per-node=2 sh -c 'exit 5'", 5, "exit code 5");
    check_err("tutti run sh -c 'kill -ABRT $$$$'", 134, "SIGABRT");
    check_err("tutti run --nnodes=2 --master-addr=192.0.2.1 true", 1, "TUTTI_SECRET_FILE");
    check_err("tutti run --nnodes=2 true", 1, "64 random hex digits, mode 0600");
    check_err("ulimit -n 40; tutti run --nproc-per-node=30 sleep 100", 1,
              "this process may have 40");
}

/* As without a launcher: a disk that is full is a failure, a reader that has left ends the writers. */
static void output_that_cannot_be_written(void **state)
{
    (void)state;
    check_err("tutti run echo x > /dev/full", 1,
              "standard output cannot be written: No space left");
    check_err("tutti run sh -c 'echo x; exit 4' > /dev/full", 4, "exit code 4");
    check_err("tutti run echo x >&-", 1, "standard output cannot be written: Bad file descriptor; the ranks' output is lost");
    check_err("tutti run true >&-", 0, "");
    run("tutti run echo x 2> /dev/full");
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "[default0]:x\n");
    run("tutti run sh -c 'echo x >&2' 2> /dev/full");
    assert_int_equal(r.code, 1);
    run("{ tutti run --nproc-per-node=2 yes; echo code $? >&2; } | head -n 1");
    assert_non_null(strstr(r.out, "]:y\n"));
    assert_non_null(strstr(r.err, "signal SIGPIPE (13)"));
    assert_non_null(strstr(r.err, "code 141\n"));
}

static int free_port(int *fd_out)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *fd_out = fd;
    return ntohs(addr.sin_port);
}

static void a_taken_port_is_named(void **state)
{
    char command[128];
    char words[32];
    int fd;
    int port = free_port(&fd);

    (void)state;
    snprintf(command, sizeof command, "tutti run --master-port %d true", port);
    snprintf(words, sizeof words, "%d", port);
    check_err(command, 1, words);
    assert_non_null(strstr(r.err, "127.0.0.1"));
    close(fd);
}

/* A port that nobody else is given while fd_out is open. It does not listen, so who sets SO_REUSEADDR, as servers do, can. */
static int reserve_port(int *fd_out)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    *fd_out = fd;
    return ntohs(addr.sin_port);
}

static void two_launchers_make_one_job(void **state)
{
    char command[768];
    char secret[] = "/tmp/tutti-run-test-XXXXXX";
    int secret_fd = mkstemp(secret); /* of mode 0600 */
    int fd;
    int port = reserve_port(&fd);

    (void)state;
    assert_true(secret_fd >= 0);
    assert_int_equal(dprintf(secret_fd, "%064d\n", 7), 65);
    close(secret_fd);
    snprintf(command, sizeof command,
             "export TUTTI_SECRET_FILE=%s; run() { tutti run --nnodes=2 --node-rank=$1 "
             "--master-port=%d --nproc-per-node=2 "
             "sh -c 'echo $RANK of $WORLD_SIZE at $GROUP_RANK port $MASTER_PORT'; }; "
             "run 1 & run 0 && wait $!",
             secret, port);
    check_out(command, "[default0]:0 of 4 at 0 port ");
    assert_non_null(strstr(r.out, "[default1]:3 of 4 at 1 port "));
    close(fd);
    unlink(secret);
}

/* Whoever says that nobody is to be kept out needs no secret, as ranks that are started by hand do not. */
static void two_launchers_may_do_without_a_secret(void **state)
{
    char command[768];
    int fd;
    int port = reserve_port(&fd);

    (void)state;
    snprintf(command, sizeof command,
             "unset TUTTI_SECRET_FILE; run() { tutti run --nnodes=2 --node-rank=$1 --master-port=%d sh -c "
             "'echo $RANK of $WORLD_SIZE with ${TUTTI_SECRET_FILE-no secret}'; }; ",
             port);
    snprintf(command + strlen(command), sizeof command - strlen(command), "export TUTTI_AUTH=none; run 1 & run 0 && wait $!");
    check_out(command, "[default0]:0 of 2 with no secret");
    assert_non_null(strstr(r.out, "[default0]:1 of 2 with no secret"));
    close(fd);
    check_err("unset TUTTI_SECRET_FILE; TUTTI_AUTH=secret tutti run --nnodes=2 --node-rank=0 --master-port=1 true", 1,
              "a job on 2 hosts needs a secret that all of them know");
    check_err("unset TUTTI_SECRET_FILE; TUTTI_AUTH=perhaps tutti run --nnodes=2 --node-rank=0 --master-port=1 true", 2,
              "not 'secret' or 'none'");
}

/* Of two hosts that are both told to be host 0, one does not have its address. */
static void who_may_not_be_host_0_is_asked(void **state)
{
    int fd;
    char command[160];
    int port = reserve_port(&fd);

    (void)state;
    snprintf(command, sizeof command, "TUTTI_AUTH=none tutti run --nnodes=2 --node-rank=0 --master-addr=192.0.2.1 --master-port=%d true", port);
    check_err(command, 1, "next: see whether --node-rank 0 is right here: only the host that has that address is host 0; if it is, set MASTER_ADDR");
    close(fd);
}

static void addresses_in_brackets_are_taken_out(void **state)
{
    (void)state;
    if (access("/proc/net/if_inet6", R_OK) != 0 || system("grep -q ' lo$' /proc/net/if_inet6") != 0)
        skip();
    check_out("tutti run --master-addr [::1] sh -c 'echo at $MASTER_ADDR.'", "[default0]:at ::1.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_explains_itself),
        cmocka_unit_test(options_are_spelt_in_all_ways),
        cmocka_unit_test(wrong_options_get_one_message),
        cmocka_unit_test(the_command_line_wins),
        cmocka_unit_test(a_variable_of_no_option_is_told),
        cmocka_unit_test(programs_end_the_command),
        cmocka_unit_test(output_that_cannot_be_written),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(two_launchers_make_one_job),
        cmocka_unit_test(two_launchers_may_do_without_a_secret),
        cmocka_unit_test(who_may_not_be_host_0_is_asked),
        cmocka_unit_test(addresses_in_brackets_are_taken_out),
    };
    char path[4096];

    snprintf(path, sizeof path, "%s:%s", TUTTI_BIN_DIR, getenv("PATH"));
    setenv("PATH", path, 1);
    unsetenv("TUTTI_SECRET_FILE");
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
