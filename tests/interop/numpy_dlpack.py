#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""numpy-dlpack: tensors and spans go to numpy and come back, without a copy, and nothing is freed twice.

Method  ctypes calls the C functions; a capsule that this program makes and takes apart stands for what a
        Python binding would do. Whether memory is shared is asked with writes from both sides, who owns
        it with reference counts.
Skips   (77) where there is no numpy that knows from_dlpack.

usage: numpy_dlpack.py --libtutti FILE --libtrain FILE
"""
import argparse
import ctypes
import gc
import sys

try:
    import numpy
    numpy.from_dlpack
except (ImportError, AttributeError) as missing:
    print(f"SKIP: {missing}")
    sys.exit(77)

VOID = ctypes.c_void_p
OLD, OLD_USED = b"dltensor", b"used_dltensor"  # capsules keep the pointers: these live for ever
NEW, NEW_USED = b"dltensor_versioned", b"used_dltensor_versioned"
DTYPES = {"bool": 0, "uint8": 1, "int32": 6, "int64": 8, "float32": 11, "float64": 12}  # tutti_dtype


class Span(ctypes.Structure):
    _fields_ = [("data", VOID), ("count", ctypes.c_int64), ("dtype", ctypes.c_int),
                ("device_type", ctypes.c_int), ("device_index", ctypes.c_int)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", VOID), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def declare(lib, name, result, *arguments):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments
    return function


class Lib:
    def __init__(self, libtutti, libtrain):
        tutti = ctypes.CDLL(libtutti, mode=ctypes.RTLD_GLOBAL)
        train = ctypes.CDLL(libtrain)
        out = ctypes.POINTER(VOID)
        self.last_error = declare(tutti, "tutti_last_error", ctypes.c_char_p)
        self.span_from = declare(tutti, "tutti_span_from_dlpack", ctypes.c_int, VOID, VOID)
        self.from_old = declare(train, "tutti_tensor_from_dlpack", VOID, VOID)
        self.from_new = declare(train, "tutti_tensor_from_dlpack_versioned", VOID, VOID)
        self.to_old = declare(train, "tutti_tensor_to_dlpack", ctypes.c_int, VOID, out)
        self.to_new = declare(train, "tutti_tensor_to_dlpack_versioned", ctypes.c_int, VOID, out)
        self.release = declare(train, "tutti_tensor_release", None, VOID)
        self.data = declare(train, "tutti_tensor_data", VOID, VOID)
        self.dtype = declare(train, "tutti_tensor_dtype", ctypes.c_int, VOID)
        self.transpose = declare(train, "tutti_tensor_transpose", VOID, VOID, ctypes.c_int, ctypes.c_int)
        self.arange = declare(train, "tutti_tensor_arange", VOID, ctypes.c_int, *[ctypes.c_double] * 3)
        self.reshape = declare(train, "tutti_tensor_reshape", VOID, VOID, ctypes.c_int,
                               ctypes.POINTER(ctypes.c_int64))


api = ctypes.pythonapi
capsule_new = declare(api, "PyCapsule_New", ctypes.py_object, VOID, ctypes.c_char_p, VOID)
capsule_pointer = declare(api, "PyCapsule_GetPointer", VOID, ctypes.py_object, ctypes.c_char_p)
capsule_rename = declare(api, "PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)


class Lent:
    """A tensor as numpy wants to see it: it asks for a capsule, and takes over what is inside."""

    def __init__(self, lib, tensor, versioned):
        self.lib, self.tensor, self.versioned = lib, tensor, versioned

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        managed = VOID()
        to = self.lib.to_new if self.versioned else self.lib.to_old
        assert to(self.tensor, ctypes.byref(managed)) == 0, self.lib.last_error()
        return capsule_new(managed, NEW if self.versioned else OLD, None)


def borrow(lib, array, versioned):
    """A tensor over array's memory."""
    capsule = array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__()
    make, name, used = (lib.from_new, NEW, NEW_USED) if versioned else (lib.from_old, OLD, OLD_USED)
    tensor = make(capsule_pointer(capsule, name))
    assert tensor, lib.last_error()
    capsule_rename(capsule, used)
    return tensor


def knows_versions():
    try:
        numpy.zeros(1).__dlpack__(max_version=(1, 1))
        return True
    except TypeError:
        return False


def check_lending(lib, versioned):
    flat = lib.arange(DTYPES["float32"], 0, 6, 1)
    matrix = lib.reshape(flat, 2, (ctypes.c_int64 * 2)(2, 3))
    turned = lib.transpose(matrix, 0, 1)
    array = numpy.from_dlpack(Lent(lib, turned, versioned))
    assert array.shape == (3, 2) and array.strides == (4, 12), (array.shape, array.strides)
    assert array.tolist() == [[0, 3], [1, 4], [2, 5]], array
    assert array.ctypes.data == lib.data(flat)
    ctypes.cast(lib.data(flat), ctypes.POINTER(ctypes.c_float))[5] = 50
    assert array[2, 1] == 50
    for tensor in (flat, matrix, turned):
        lib.release(tensor)
    assert array.tolist() == [[0, 3], [1, 4], [2, 50]], array  # the memory is numpy's to end now


def check_borrowing(lib, versioned):
    for name, number in DTYPES.items():
        array = numpy.array([[0, 1, 2], [3, 4, 5]]).astype(name)[:, 1:]
        held = sys.getrefcount(array)
        tensor = borrow(lib, array, versioned)
        assert lib.dtype(tensor) == number and lib.data(tensor) == array.ctypes.data
        assert sys.getrefcount(array) == held + 1, "the tensor does not hold the array"
        back = numpy.from_dlpack(Lent(lib, tensor, versioned))
        lib.release(tensor)
        assert (back == array).all() and back.dtype == array.dtype
        del back
        gc.collect()
        assert sys.getrefcount(array) == held, "the deleter did not run once"


def check_read_only(lib):
    array = numpy.arange(4.0)
    array.flags.writeable = False
    held = sys.getrefcount(array)
    tensor = borrow(lib, array, True)
    assert lib.data(tensor) != array.ctypes.data and sys.getrefcount(array) == held
    lib.release(tensor)


def check_spans(lib, versioned):
    """The struct inside numpy's capsule, as a span."""
    offset = 32 if versioned else 0  # of the tensor in the managed struct
    for array, wanted in ((numpy.zeros((2, 3), "complex64"), 15), (numpy.zeros(5, "float16"), 9)):
        capsule = array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__()
        span = Span()
        at = capsule_pointer(capsule, NEW if versioned else OLD) + offset
        assert lib.span_from(at, ctypes.byref(span)) == 0, lib.last_error()
        assert (span.data, span.count, span.dtype) == (array.ctypes.data, array.size, wanted)
        assert Tensor.from_address(at).ndim == array.ndim
    capsule = numpy.zeros((4, 4))[:, :2].__dlpack__()
    assert lib.span_from(capsule_pointer(capsule, OLD), ctypes.byref(Span())) == 1
    assert b"not contiguous" in lib.last_error()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--libtutti", required=True)
    args.add_argument("--libtrain", required=True)
    args = args.parse_args()
    lib = Lib(args.libtutti, args.libtrain)
    ways = [False, True] if knows_versions() else [False]
    for versioned in ways:
        check_lending(lib, versioned)
        check_borrowing(lib, versioned)
        check_spans(lib, versioned)
    if True in ways:
        check_read_only(lib)
    print(f"numpy-dlpack: numpy {numpy.__version__}, {' and '.join(['old', 'versioned'][:len(ways)])}")


if __name__ == "__main__":
    main()
