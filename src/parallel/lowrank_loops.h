/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lowrank_loops.h - the loops of lowrank.c for a type T, whose names end as NAME() says; included once for each.
 *
 * A vector of 32 bytes is two registers, or one, or a half: what is added to what is the same. */

typedef T NAME(vec) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));

/* The sum of a vector, and of what is left behind whole vectors. */
static T NAME(fold)(const NAME(vec) *v, const T *x, const T *y, int64_t from, int64_t to)
{
    T   parts[LANES], rest = 0;
    int width, l;

    memcpy(parts, v, sizeof parts);
    for (width = LANES / 2; width > 0; width /= 2)
        for (l = 0; l < width; l++)
            parts[l] += parts[l + width];
    for (; from < to; from++)
        rest += x[from] * y[from];
    return parts[0] + rest;
}

static T NAME(dot)(const T *x, const T *y, int64_t n)
{
    NAME(vec) sum = { 0 };
    int64_t j;

    for (j = 0; j + LANES <= n; j += LANES)
        sum += *(const NAME(vec) *)(x + j) * *(const NAME(vec) *)(y + j);
    return NAME(fold)(&sum, x, y, j, n);
}

/* Four rows at once: y is loaded once for them. Each as dot() has it. */
static void NAME(dots)(const T *x, int64_t stride, const T *y, int64_t n, T *out)
{
    NAME(vec) a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    int64_t j;

    for (j = 0; j + LANES <= n; j += LANES) {
        const NAME(vec) v = *(const NAME(vec) *)(y + j);

        a += *(const NAME(vec) *)(x + j) * v;
        b += *(const NAME(vec) *)(x + stride + j) * v;
        c += *(const NAME(vec) *)(x + 2 * stride + j) * v;
        d += *(const NAME(vec) *)(x + 3 * stride + j) * v;
    }
    out[0] = NAME(fold)(&a, x, y, j, n);
    out[1] = NAME(fold)(&b, x + stride, y, j, n);
    out[2] = NAME(fold)(&c, x + 2 * stride, y, j, n);
    out[3] = NAME(fold)(&d, x + 3 * stride, y, j, n);
}

static void NAME(left)(const tti_matrix *of, const T *m, const T *q, T *p)
{
    int64_t i;
    int     c;

    for (i = 0; i + ROWS <= of->rows; i += ROWS)
        for (c = 0; c < of->k; c++)
            NAME(dots)(m + i * of->cols, of->cols, q + c * of->cols, of->cols, p + c * of->rows + i);
    for (; i < of->rows; i++)
        for (c = 0; c < of->k; c++)
            p[c * of->rows + i] = NAME(dot)(m + i * of->cols, q + c * of->cols, of->cols);
}

/* q += the sum of four rows, each times its number. */
static void NAME(add_rows)(const T *m, int64_t n, const T *p, T *q)
{
    const T *m1 = m + n, *m2 = m + 2 * n, *m3 = m + 3 * n;
    int64_t  j;

    for (j = 0; j + LANES <= n; j += LANES) {
        NAME(vec) *v = (NAME(vec) *)(q + j);

        *v += (*(const NAME(vec) *)(m + j) * p[0] + *(const NAME(vec) *)(m1 + j) * p[1]) +
              (*(const NAME(vec) *)(m2 + j) * p[2] + *(const NAME(vec) *)(m3 + j) * p[3]);
    }
    for (; j < n; j++)
        q[j] += (m[j] * p[0] + m1[j] * p[1]) + (m2[j] * p[2] + m3[j] * p[3]);
}

static void NAME(add_row)(const T *m, int64_t n, T p, T *q)
{
    int64_t j;

    for (j = 0; j < n; j++)
        q[j] += m[j] * p;
}

static void NAME(right)(const tti_matrix *of, const T *m, const T *p, T *q)
{
    int64_t i;
    int     c;

    for (i = 0; i < of->k * of->cols; i++)
        q[i] = 0;
    for (i = 0; i + ROWS <= of->rows; i += ROWS)
        for (c = 0; c < of->k; c++)
            NAME(add_rows)(m + i * of->cols, of->cols, p + c * of->rows + i, q + c * of->cols);
    for (; i < of->rows; i++)
        for (c = 0; c < of->k; c++)
            NAME(add_row)(m + i * of->cols, of->cols, p[c * of->rows + i], q + c * of->cols);
}

static void NAME(row)(const tti_matrix *of, const T *p, const T *q, int64_t i, T *out)
{
    const int64_t n = of->cols, rows = of->rows;
    int64_t       j;
    int           c;

    for (j = 0; j + LANES <= n; j += LANES) {
        NAME(vec) v = *(const NAME(vec) *)(q + j) * p[i];

        for (c = 1; c < of->k; c++)
            v += *(const NAME(vec) *)(q + c * n + j) * p[c * rows + i];
        *(NAME(vec) *)(out + j) = v;
    }
    for (; j < n; j++) {
        out[j] = q[j] * p[i];
        for (c = 1; c < of->k; c++)
            out[j] += q[c * n + j] * p[c * rows + i];
    }
}

static void NAME(add)(T *x, const T *y, int64_t n)
{
    int64_t j;

    for (j = 0; j < n; j++)
        x[j] += y[j];
}

static void NAME(subtract)(T *x, const T *y, int64_t n)
{
    int64_t j;

    for (j = 0; j < n; j++)
        x[j] -= y[j];
}

/* ---- orthonormal columns ---- */

/* In f64, whatever T is. */
static double NAME(wide_dot)(const T *x, const T *y, int64_t n)
{
    double  a = 0.0, b = 0.0;
    int64_t j;

    for (j = 0; j + 1 < n; j += 2) {
        a += (double)x[j] * (double)y[j];
        b += (double)x[j + 1] * (double)y[j + 1];
    }
    return j < n ? a + b + (double)x[j] * (double)y[j] : a + b;
}

static void NAME(project)(T *a, int64_t n, int c)
{
    T      *x = a + c * n;
    int64_t j;
    int     d;

    for (d = 0; d < c; d++) {
        const T s = (T)NAME(wide_dot)(a + d * n, x, n);

        for (j = 0; j < n; j++)
            x[j] -= s * a[d * n + j];
    }
}

static void NAME(normalise)(T *x, int64_t n, double length, double before, double epsilon)
{
    const T by = (T)(length + epsilon);
    int64_t j;

    if (length <= NOISE * before) /* nothing but rounding is left of it; not so where it is NaN */
        for (j = 0; j < n; j++)
            x[j] = 0;
    else
        for (j = 0; j < n; j++)
            x[j] /= by;
}

static void NAME(orthogonalise)(T *a, int64_t n, int k, double epsilon)
{
    double before, length;
    int    c;

    for (c = 0; c < k; c++) {
        T *x = a + c * n;

        before = length = sqrt(NAME(wide_dot)(x, x, n));
        if (c > 0) {
            NAME(project)(a, n, c);
            length = sqrt(NAME(wide_dot)(x, x, n));
        }
        if (c > 0 && length < AGAIN * before) { /* what is left has lost digits */
            NAME(project)(a, n, c);
            length = sqrt(NAME(wide_dot)(x, x, n));
        }
        NAME(normalise)(x, n, length, before, epsilon);
    }
}

static bool NAME(is_zero)(const T *x, int64_t n)
{
    int64_t j;

    for (j = 0; j < n; j++)
        if (x[j] != 0)
            return false;
    return true;
}

static bool NAME(is_finite)(const T *x, int64_t n)
{
    int64_t j;

    for (j = 0; j < n; j++)
        if (!isfinite(x[j]))
            return false;
    return true;
}
