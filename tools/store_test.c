/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_test.c
 * Goal    `tutti store` does what its help says, with its exit codes, on tcp and on file, and says
 *         each failure in one message.
 * Method  the built command in shell lines. $url is a server that lives as long as the test: its
 *         standard output is a pipe, whose first line is its URL. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TEXT_MAX = 65536 };

static char dir[64];
static pid_t server;
static char out[TEXT_MAX], err[TEXT_MAX]; /* of the last command */

static void read_into(FILE *file, char text[TEXT_MAX])
{
    size_t n;

    rewind(file);
    n = fread(text, 1, TEXT_MAX - 1, file);
    text[n] = '\0';
    fclose(file);
}

static int run(const char *command)
{
    FILE *to = tmpfile();
    FILE *to_err = tmpfile();
    pid_t pid;
    int status = -1;

    assert_true(to != NULL && to_err != NULL);
    pid = fork();
    if (pid == 0) {
        dup2(fileno(to), STDOUT_FILENO);
        dup2(fileno(to_err), STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    read_into(to, out);
    read_into(to_err, err);
    return WEXITSTATUS(status);
}

/* A command that prints exactly `text`. */
static void prints(const char *command, const char *text)
{
    int code = run(command);

    if (code != 0 || strcmp(out, text) != 0 || err[0] != '\0')
        fail_msg("%s: code %d, out '%s', err '%s'", command, code, out, err);
}

/* One that ends with code, and, unless words is NULL, says them. */
static void ends(const char *command, int code, const char *words)
{
    int got = run(command);

    if (got != code || (words != NULL && strstr(err, words) == NULL))
        fail_msg("%s: code %d, out '%s', err '%s'", command, got, out, err);
    if (words == NULL)
        assert_string_equal(err, "");
    else
        assert_int_equal(strncmp(err, "tutti store: ", 13), 0);
}

/* A command that is to run out of the time that it is given, 0.02 s, and to say words. On a machine that is busy the time may be over
 * before the server is reached, which is another thing to say: then it has ten times as much, and so on. */
static void runs_out_of_time(const char *begin, const char *words)
{
    static const char *const times[] = { "0.02", "0.2", "2" };
    char                     command[256];
    size_t                   i;

    for (i = 0; i < sizeof times / sizeof times[0]; i++) {
        snprintf(command, sizeof command, "%s --timeout %s", begin, times[i]);
        if (run(command) == 3 && strncmp(err, "tutti store: ", 13) == 0 && strstr(err, words) != NULL)
            return;
    }
    snprintf(command, sizeof command, "%s --timeout 20", begin);
    ends(command, 3, words);
}

/* Start `tutti store serve`; its URL goes into the environment as url. */
static int start_server(void **state)
{
    char url[128] = "";
    int pipes[2];
    ssize_t n;

    (void)state;
    if (pipe(pipes) != 0)
        return -1;
    server = fork();
    if (server == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execlp("tutti", "tutti", "store", "serve", (char *)NULL);
        _exit(126);
    }
    close(pipes[1]);
    n = read(pipes[0], url, sizeof url - 1);
    close(pipes[0]);
    if (n < 8 || url[n - 1] != '\n')
        return -1;
    url[n - 1] = '\0';
    return setenv("url", url, 1);
}

/* A clean end on SIGTERM is part of the contract. */
static int stop_server(void **state)
{
    int status = -1;

    (void)state;
    kill(server, SIGTERM);
    return waitpid(server, &status, 0) == server && WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : -1;
}

static void keys_come_and_go(void **state)
{
    (void)state;
    prints("tutti store --store $url set k 'a value'", "");
    prints("tutti store --store=$url get k", "a value");
    prints("printf 'from\\0stdin' | tutti store set bytes - --store $url && "
           "tutti store get bytes --store $url | od -An -c | tr -d ' \\n'",
           "from\\0stdin");
    prints("tutti store --store $url append k ', longer' && tutti store --store $url get k",
           "a value, longer");
    prints("tutti store --store $url add n 5 && tutti store --store $url add n -- -7 && "
           "tutti store --store $url add n",
           "5\n-2\n-1\n");
    prints("tutti store --store $url compare-set n -1 ten", "ten");
    prints("tutti store --store $url keys && tutti store --store $url keys k", "bytes\nk\nn\nk\n");
    ends("tutti store --store $url check k n", 0, NULL);
    ends("tutti store --store $url delete k", 0, NULL);
    ends("tutti store --store $url delete k", 4, NULL);
    ends("tutti store --store $url check k n", 4, NULL);
    prints("tutti store --store $url set -- --key --value && tutti store --store $url get -- --key",
           "--value");
}

static void queues_and_barriers_work(void **state)
{
    (void)state;
    prints("tutti store --store $url push q one && tutti store --store $url push q two && "
           "tutti store --store $url len q && tutti store --store $url pop q && "
           "tutti store --store $url pop --no-wait q",
           "2\nonetwo");
    ends("tutti store --store $url pop q --no-wait", 4, "queue 'q' is empty");
    runs_out_of_time("tutti store --store $url pop q", "nothing came to queue 'q'");
    ends("tutti store --store $url barrier b 2 & tutti store --store $url barrier b 2 && wait $!",
         0, NULL);
    ends("tutti store --store $url wait late & tutti store --store $url set late x && wait $!", 0,
         NULL);
}

static void several_keys_go_at_once(void **state)
{
    (void)state;
    prints("tutti store --store $url multi-set a one b '' c three && "
           "tutti store --store $url multi-get c b a",
           "three\n\none\n");
    prints("printf four | tutti store --store $url multi-set d - && tutti store --store $url get d",
           "four");
    prints("tutti store --store $url num-keys", "4\n");
    runs_out_of_time("tutti store --store $url multi-get a never", "'never'");
    ends("tutti store --store $url multi-set a b c", 2, "a key without a value: 'c'");
}

/* The socket is this process's; the command inherits it. */
static void a_socket_can_be_inherited(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof at;
    char command[512];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_true(fd > 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    snprintf(command, sizeof command,
             "cd $dir && mkfifo inherited && { tutti store serve --listen-fd %d >inherited & } && "
             "read at <inherited && [ $at = tcp://127.0.0.1:%d ] && "
             "tutti store --store $at set k v && tutti store --store $at get k; "
             "kill $! && wait $!",
             fd, ntohs(at.sin_port));
    prints(command, "v");
    snprintf(command, sizeof command,
             "tutti store serve --listen-fd %d --store tcp://127.0.0.1:1", fd);
    ends(command, 2, "is bound to port");
    close(fd);
}

static void inside_a_job_the_store_is_known(void **state)
{
    (void)state;
    prints("MASTER_ADDR=127.0.0.1 MASTER_PORT=${url##*:} tutti store add ranks", "1\n");
    prints("tutti run --standalone --nproc-per-node=2 sh -c 'tutti store barrier met 2 && "
           "tutti store add ranks >/dev/null && tutti store wait ranks'",
           "");
}

static void files_are_stores_too(void **state)
{
    (void)state;
    prints("tutti store --store file://$dir/store set k v && "
           "tutti store --store file://$dir/store get k && "
           "tutti store --store file://$dir/store keys",
           "vk\n");
    ends("tutti store --store file://$dir/store push q x", 1, "store 'file' has no queues");
    ends("tutti store --store file:///no/such/dir/x get k", 1, "/no/such/dir/x");
    runs_out_of_time("tutti store --store file://$dir/store get never", "'never'");
}

static void secrets_are_needed_where_they_are_asked_for(void **state)
{
    (void)state;
    ends("tutti store serve --store tcp://0.0.0.0:0", 2, "TUTTI_SECRET_FILE");
    ends("cd $dir && (umask 077; printf %064d 7 >one; printf %064d 8 >two) && mkfifo there && "
         "{ TUTTI_SECRET_FILE=one tutti store serve >there 2>told & } && read at <there && "
         "TUTTI_SECRET_FILE=one tutti store --store $at set k v; ok=$?; "
         "TUTTI_SECRET_FILE=two tutti store --store $at get k; bad=$?; n=0; "
         "until grep -q 'store: turned away .*secret' told || [ $n -gt 400 ]; do sleep 0.05; n=$((n + 1)); done; "
         "kill $!; wait $!; exit $((10 * ok + bad + (n > 400) * 20))", /* both ends say it */
         1, "secret");
}

static void wrong_lines_get_one_message(void **state)
{
    static const struct {
        const char *command;
        const char *words;
    } rows[] = {
        { "tutti store get k", "no store given" },
        { "tutti store --store $url walk", "unknown word 'walk'" },
        { "tutti store --store $url get", "'get' got 0 arguments" },
        { "tutti store --store $url get a b", "next: tutti store get KEY" },
        { "tutti store --store $url --shop x get k", "unknown option '--shop'" },
        { "tutti store --store udp://x:1 get k", "not the URL of a store: 'udp://x:1'" },
        { "tutti store --store tcp://x get k", "not the URL of a store: 'tcp://x'" },
        { "tutti store --store tcp://::1:80 get k", "not the URL" },
        { "tutti store --store tcp://x:0 get k", "not the URL" },
        { "tutti store --store tcp://x:65536 get k", "not the URL" },
        { "tutti store get k --store", "not the URL of a store: ''" },
        { "tutti store --store $url --timeout 0 get k", "not a time-out: '0'" },
        { "tutti store --store $url --timeout=x get k", "not a time-out: 'x'" },
        { "tutti store serve --listen-fd 0", "not a descriptor above 0: '0'" },
        { "tutti store serve --listen-fd 1000", "no TCP socket" },
        { "tutti store --store $url add k one", "not a number: 'one'" },
        { "tutti store --store $url barrier k 0", "not a number of callers: '0'" },
        { "tutti store --store $url set '' x", "key is empty" },
        { "tutti store serve --store file:///x", "not an address to serve at" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ends(rows[i].command, 2, rows[i].words);
    assert_int_equal(run("tutti store --help"), 0);
    assert_non_null(strstr(out, "usage: tutti store"));
    assert_int_equal(run("tutti store get -h"), 0);
    assert_int_equal(run("tutti store"), 2);
    assert_non_null(strstr(err, "usage: tutti store"));
    ends("tutti store serve --store $url", 1, "the port is taken");
    ends("tutti store --store $url add text && tutti store --store $url set text x && "
         "tutti store --store $url add text",
         1, "is not a number");
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/tutti-store-cmd-XXXXXX");
    return mkdtemp(dir) != NULL ? setenv("dir", dir, 1) : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return run("rm -r \"$dir\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_come_and_go, start_server, stop_server),
        cmocka_unit_test_setup_teardown(queues_and_barriers_work, start_server, stop_server),
        cmocka_unit_test_setup_teardown(inside_a_job_the_store_is_known, start_server, stop_server),
        cmocka_unit_test_setup_teardown(several_keys_go_at_once, start_server, stop_server),
        cmocka_unit_test(a_socket_can_be_inherited),
        cmocka_unit_test(files_are_stores_too),
        cmocka_unit_test(secrets_are_needed_where_they_are_asked_for),
        cmocka_unit_test_setup_teardown(wrong_lines_get_one_message, start_server, stop_server),
    };
    char path[4096];

    snprintf(path, sizeof path, "%s:%s", TUTTI_BIN_DIR, getenv("PATH"));
    setenv("PATH", path, 1);
    unsetenv("TUTTI_SECRET_FILE");
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
    return cmocka_run_group_tests_name("store", tests, make_dir, remove_dir);
}
