/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store.cpp - the table of tutti/plugin/store.h, filled by calls of a c10d::Store.
 *
 * Why     The ranks of a group meet at the store that init_process_group() has made, whatever kind that is.
 * How     A store of PyTorch's has one connection and holds a lock on it as long as it waits, so that a call which
 *         waits holds up every other one, also PyTorch's own. Therefore each call here borrows a clone, which has
 *         a connection of its own, and gives it back: there are as many as there were calls at the same time.
 *         What a call threw may have broken its connection, or left half an answer in it: that clone is dropped, and so are
 *         those that wait for a call, since what breaks one connection to a store rarely spares the others. A new one asks first
 *         whether somebody still listens there: a clone of a TCPStore whose server has ended tries for as long as that store may wait.
 * True    Nothing is thrown through the library, which is C: entries are wrapped in guarded().
 *         free_clones is the only thing that changes; lock guards it.
 * Waits   Nobody can end a wait in a c10d::Store before its time is up, so where the library may want that, a wait is a look
 *         every few milliseconds: came_in_time().
 * Limits  A c10d::Store takes a time for waits alone. What does not wait for a key (set, add, check, compare and set, delete)
 *         is over when the store has answered, whatever the deadline says: where the store's host is stopped, or out of
 *         reach without a word, such a call hangs as PyTorch's own do. A get of a key that was there, and is not any more, ends
 *         soon after the deadline; on a store without clone() it has the time that the program gave that store.
 *         Where the server of a TCPStore ends while it is being cloned, PyTorch tries for as long as that store may wait.
 *         A store without clone() is used as it is, one call at a time: its own lock sees to that. */
#include "store.h"

#include "errors.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <tutti/plugin/store.h>

namespace tutti_torch {
namespace {

using Clock = std::chrono::steady_clock; /* CLOCK_MONOTONIC, as deadlines of the table are */
using Handle = c10::intrusive_ptr<c10d::Store>;
using Bytes = std::vector<uint8_t>;

enum { ANSWER_MS = 2000 };

struct TorchStore {
    tutti_store         base; /* first: the two pointers convert both ways */
    Handle              root;
    std::mutex          lock;
    std::vector<Handle> free_clones;
};

TorchStore *self(tutti_store *store)
{
    return reinterpret_cast<TorchStore *>(store);
}

int64_t now_ns()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

/* What is left until a deadline, at least 1 ms: 0 would be for ever. A day stands for "never", since that is more than
 * any connection of such a store lives without a word. */
std::chrono::milliseconds left(int64_t deadline_ns)
{
    const int64_t day_ms = 24LL * 3600 * 1000;
    const int64_t ms = deadline_ns == INT64_MAX ? day_ms : (deadline_ns - now_ns() + 999999) / 1000000;

    return std::chrono::milliseconds(ms < 1 ? 1 : ms > day_ms ? day_ms : ms);
}

/* What connecting comes to: 0, or an errno. */
int connect_errno(const addrinfo &at)
{
    const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    pollfd    set{ fd, POLLOUT, 0 };
    int       err = fd < 0 ? errno : connect(fd, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
    socklen_t size = sizeof err;

    if (err == EINPROGRESS)
        err = poll(&set, 1, ANSWER_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) == 0 ? err : ETIMEDOUT;
    if (fd >= 0)
        close(fd);
    return err;
}

/* Throws if nobody listens any more where the server of a TCPStore was. Of other stores nothing is asked. */
void ask_for_server(const Handle &root)
{
    auto *const  prefix = dynamic_cast<c10d::PrefixStore *>(root.get());
    const Handle base = prefix != nullptr ? prefix->getUnderlyingNonPrefixStore() : root;
    const auto  *tcp = dynamic_cast<const c10d::TCPStore *>(base.get());
    addrinfo     hints{}, *found = nullptr;
    bool         is_there = false, is_refused = false;

    hints.ai_socktype = SOCK_STREAM;
    if (tcp == nullptr || getaddrinfo(tcp->getHost().c_str(), std::to_string(tcp->getPort()).c_str(), &hints, &found) != 0)
        return;
    for (const addrinfo *at = found; at != nullptr && !is_there; at = at->ai_next) {
        const int err = connect_errno(*at);

        is_there = err == 0;
        is_refused = is_refused || err == ECONNREFUSED;
    }
    freeaddrinfo(found);
    if (is_refused && !is_there)
        throw std::runtime_error("nobody listens at " + tcp->getHost() + ":" + std::to_string(tcp->getPort()) +
                                 " any more: who served the store has ended");
}

/* A clone, for the time of one call. */
class Lease {
public:
    explicit Lease(tutti_store *store) : from(self(store)), exceptions(std::uncaught_exceptions())
    {
        std::unique_lock<std::mutex> hold(from->lock);

        if (!from->free_clones.empty()) {
            clone = std::move(from->free_clones.back());
            from->free_clones.pop_back();
            return;
        }
        hold.unlock();
        ask_for_server(from->root);
        try {
            clone = from->root->clone();
        } catch (const std::exception &) {
            clone = from->root;
        }
    }
    ~Lease()
    {
        std::vector<Handle>         dropped; /* behind the lock: it closes connections */
        std::lock_guard<std::mutex> hold(from->lock);

        if (clone == from->root)
            return;
        if (std::uncaught_exceptions() > exceptions)
            dropped.swap(from->free_clones);
        else
            from->free_clones.push_back(std::move(clone));
    }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    c10d::Store *operator->() const { return clone.get(); }
    c10d::Store *get() const { return clone.get(); }

    /* Until when a get of keys that are there may wait for the answer, which takes some time also where there is none left.
     * The program's own store keeps the time that the program has given it. */
    void within(int64_t deadline_ns) const
    {
        if (clone != from->root)
            clone->setTimeout(std::max(left(deadline_ns), std::chrono::milliseconds(ANSWER_MS)));
    }

private:
    TorchStore *from;
    int         exceptions; /* under way when it was borrowed */
    Handle      clone;
};

/* Run an entry and word its failure. A c10d::Store has no kind of exception of its own for "not in time", so the clock
 * tells. */
template <typename F> tutti_status guarded(const char *what, const char *key, int64_t deadline_ns, F body)
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return tutti_store_fail(TUTTI_E_NOMEM, "no memory for a call on PyTorch's store");
    } catch (const std::exception &e) {
        const c10::Error *error = dynamic_cast<const c10::Error *>(&e);
        const std::string cause = error != nullptr ? error->what_without_backtrace() : e.what();
        const bool        is_late = now_ns() >= deadline_ns;
        const std::string words = std::string("PyTorch's store could not ") + what + " key '" + key + "'" +
                                  (is_late ? " in time" : "") + ": " + cause;

        return tutti_store_fail(is_late ? TUTTI_E_TIMEOUT : TUTTI_E_STORE, words.c_str());
    }
}

/* Wait for keys; false: time is up, or the library wants the thread back. Where it may want that, and in short waits, which
 * often end without them, the keys are looked for again and again: a wait of a TCPStore's that ends so writes a warning. */
bool came_in_time(c10d::Store *store, const std::vector<std::string> &keys, int64_t deadline_ns)
{
    const std::chrono::milliseconds most(10), short_wait(2000);
    std::chrono::milliseconds       pause(1);

    while (!store->check(keys)) {
        if (now_ns() >= deadline_ns || tutti_store_stops())
            return false;
        if (tutti_store_slice(deadline_ns) == deadline_ns && left(deadline_ns) > short_wait) {
            store->wait(keys, left(deadline_ns));
            return true;
        }
        std::this_thread::sleep_for(std::min(pause, left(deadline_ns)));
        pause = std::min(2 * pause, most);
    }
    return true;
}

tutti_status not_in_time(const char *key)
{
    const std::string words = std::string("key '") + key + "' did not come into PyTorch's store in time";

    return tutti_store_fail(TUTTI_E_TIMEOUT, words.c_str());
}

tutti_status copy_out(const Bytes &value, tutti_bytes *out)
{
    char *copy = static_cast<char *>(malloc(value.size() + 1));

    if (copy == nullptr)
        throw std::bad_alloc();
    if (!value.empty())
        memcpy(copy, value.data(), value.size());
    copy[value.size()] = '\0';
    *out = tutti_bytes{ copy, value.size() };
    return TUTTI_OK;
}

Bytes bytes_of(const void *val, size_t len)
{
    const uint8_t *from = static_cast<const uint8_t *>(val);

    return len == 0 ? Bytes() : Bytes(from, from + len);
}

tutti_status torch_set(tutti_store *store, const char *key, const void *val, size_t len, int64_t deadline_ns)
{
    return guarded("set", key, deadline_ns, [&] {
        Lease(store)->set(key, bytes_of(val, len));
        return TUTTI_OK;
    });
}

tutti_status torch_get(tutti_store *store, const char *key, int64_t deadline_ns, tutti_bytes *val_out)
{
    return guarded("get", key, deadline_ns, [&] {
        Lease lease(store);

        if (!came_in_time(lease.get(), { key }, deadline_ns))
            return not_in_time(key);
        lease.within(deadline_ns);
        return copy_out(lease->get(key), val_out);
    });
}

tutti_status torch_add(tutti_store *store, const char *key, int64_t delta, int64_t deadline_ns, int64_t *sum_out)
{
    return guarded("add to", key, deadline_ns, [&] {
        *sum_out = Lease(store)->add(key, delta);
        return TUTTI_OK;
    });
}

void torch_close(tutti_store *store)
{
    delete self(store);
}

std::vector<std::string> names_of(const char *const *keys, size_t n_keys)
{
    return std::vector<std::string>(keys, keys + n_keys);
}

tutti_status torch_wait_all(tutti_store *store, const char *const *keys, size_t n_keys, int64_t deadline_ns)
{
    return guarded("wait for", keys[0], deadline_ns, [&] {
        Lease lease(store);

        return came_in_time(lease.get(), names_of(keys, n_keys), deadline_ns) ? TUTTI_OK : not_in_time(keys[0]);
    });
}

tutti_status torch_check(tutti_store *store, const char *const *keys, size_t n_keys, int64_t deadline_ns, bool *all_out)
{
    return guarded("look for", keys[0], deadline_ns, [&] {
        *all_out = Lease(store)->check(names_of(keys, n_keys));
        return TUTTI_OK;
    });
}

tutti_status torch_compare_set(tutti_store *store, const char *key, const void *expected, size_t expected_len,
                               const void *desired, size_t desired_len, int64_t deadline_ns, tutti_bytes *val_out)
{
    return guarded("compare and set", key, deadline_ns, [&] {
        return copy_out(Lease(store)->compareSet(key, bytes_of(expected, expected_len), bytes_of(desired, desired_len)),
                        val_out);
    });
}

tutti_status torch_delete_key(tutti_store *store, const char *key, int64_t deadline_ns, bool *deleted_out)
{
    return guarded("delete", key, deadline_ns, [&] {
        *deleted_out = Lease(store)->deleteKey(key);
        return TUTTI_OK;
    });
}

tutti_status torch_multi_get(tutti_store *store, const char *const *keys, size_t n_keys, int64_t deadline_ns,
                             tutti_bytes *vals_out)
{
    return guarded("get", keys[0], deadline_ns, [&] {
        Lease              lease(store);
        std::vector<Bytes> values;

        if (!came_in_time(lease.get(), names_of(keys, n_keys), deadline_ns))
            return not_in_time(keys[0]);
        lease.within(deadline_ns);
        values = lease->multiGet(names_of(keys, n_keys));
        for (size_t i = 0; i < n_keys; i++)
            copy_out(values.at(i), &vals_out[i]);
        return TUTTI_OK;
    });
}

/* append, multi_set and num_keys are left out: the library does without, and not every c10d::Store has them. */
tutti_store_ops make_ops()
{
    tutti_store_ops ops = {};

    ops.api = TUTTI_STORE_API;
    ops.size = sizeof ops;
    ops.scheme = "c10d";
    ops.set = torch_set;
    ops.get = torch_get;
    ops.add = torch_add;
    ops.close = torch_close;
    ops.wait_all = torch_wait_all;
    ops.check = torch_check;
    ops.compare_set = torch_compare_set;
    ops.delete_key = torch_delete_key;
    ops.multi_get = torch_multi_get;
    return ops;
}

} // namespace

tutti_store *wrap_store(const c10::intrusive_ptr<c10d::Store> &store)
{
    static const tutti_store_ops ops = make_ops();
    auto                         wrapped = std::make_unique<TorchStore>();

    wrapped->base.ops = &ops;
    wrapped->base.front = nullptr;
    wrapped->root = store;
    check(tutti_store_adopt(&wrapped->base), "tutti cannot use the store");
    return &wrapped.release()->base;
}

} // namespace tutti_torch
