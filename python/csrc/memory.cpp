/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.cpp - an allocator for PyTorch's tensors on the CPU that gives large ones registered memory (tutti/memory.h).
 *
 * How     It is put in the place of the allocator that there is, once, and stays: storages keep a pointer to theirs, to grow
 *         with. What it does is one number, from_bytes; below it, at 0, and where the heap has no room, the one from before is
 *         asked. Tensors carry the function that gives their memory back, so it does not matter what the number is by then.
 *         Some of PyTorch's code takes bare memory from an allocator, and gives it back by one function for all of it
 *         (raw_deleter): that one looks whose it is among the blocks that are out.
 * True    from_bytes is a single word; out has a lock. Of a child of fork() nothing is asked for: its parent would share what it
 *         writes. What the child has inherited it cannot free, and keeps. */
#include "memory.h"

#include <atomic>
#include <c10/core/CPUAllocator.h>
#include <mutex>
#include <tutti/memory.h>
#include <unistd.h>
#include <unordered_set>

namespace tutti_torch {
namespace {

/* Blocks of ours that somebody has. It is never destroyed: tensors may outlive everything. */
struct Out {
    std::mutex                 lock;
    std::unordered_set<void *> blocks;
};

Out &out();

void lock_out()
{
    out().lock.lock();
}

void unlock_out()
{
    out().lock.unlock();
}

/* A child of fork() frees memory, too: its lock is held by nobody, and its set is whole. */
Out *make_out()
{
    pthread_atfork(&lock_out, &unlock_out, &unlock_out);
    return new Out;
}

Out &out()
{
    static Out *made = make_out();

    return *made;
}

bool came_back(void *data)
{
    std::lock_guard<std::mutex> hold(out().lock);

    return out().blocks.erase(data) > 0;
}

void give_back(void *data)
{
    if (came_back(data))
        tutti_free(data);
}

c10::Allocator *before; /* written once, before ours is in its place */

void give_any_back(void *data)
{
    if (came_back(data))
        tutti_free(data);
    else
        before->raw_deleter()(data);
}

class RegisteredAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(size_t n) override
    {
        const size_t from = from_bytes.load(std::memory_order_relaxed);
        void        *data = nullptr;

        if (from == 0 || n < from || getpid() != pid_ || tutti_alloc(n, &data) != TUTTI_OK)
            return before->allocate(n);
        {
            std::lock_guard<std::mutex> hold(out().lock);

            out().blocks.insert(data);
        }
        return { data, data, &give_back, at::Device(at::kCPU) };
    }

    c10::DeleterFnPtr raw_deleter() const override { return before->raw_deleter() != nullptr ? &give_any_back : nullptr; }
    void              copy_data(void *dest, const void *src, size_t n) const override { default_copy_data(dest, src, n); }

    std::atomic<size_t> from_bytes{ 0 };

private:
    const pid_t pid_ = getpid();
};

std::mutex           placing; /* guards placed */
RegisteredAllocator *placed;

void place()
{
    auto *ours = new RegisteredAllocator;

    before = c10::GetCPUAllocator();
    c10::SetCPUAllocator(ours);
    if (c10::GetCPUAllocator() == ours) {
        placed = ours;
        return;
    }
    delete ours;
    TORCH_CHECK(false, "registered_memory: another allocator of tensors on the CPU was set with a priority above 0\n"
                       "  next: tutti_torch.empty()");
}

} // namespace

size_t use_registered_memory(size_t from_bytes)
{
    std::lock_guard<std::mutex> hold(placing);

    if (placed == nullptr)
        place();
    return placed->from_bytes.exchange(from_bytes);
}

} // namespace tutti_torch
