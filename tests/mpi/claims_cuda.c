/* SPDX-License-Identifier: BSD-3-Clause
 *
 * claims_cuda.c - loaded in front of an MPI library it has that say that it takes memory of GPUs, which over the stand-in for the
 * CUDA runtime (tests/fake_nccl) is true: there such memory is the host's. For tests alone. */
int MPIX_Query_cuda_support(void);

__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void)
{
    return 1;
}
