/* SPDX-License-Identifier: Apache-2.0
   contract_int_pack: 8-bit factors as their kernels take them: rows and columns in panels, constants once a
   model, and sums of both. contract_int.c multiplies them. */
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract_int.h"

/* The sum of n bytes, flip over each, as the kernel sees them. */
static uint32_t sum_of(const uint8_t *from, int64_t n, uint8_t flip, bool is_signed) {
    typedef uint8_t bytes __attribute__((vector_size(16)));
    typedef uint16_t pairs __attribute__((vector_size(16)));
    const uint8_t over = (is_signed ? 0x80 : 0) ^ flip;
    uint32_t all = 0;
    int64_t i = 0;
    while (i + 16 <= n) {
        const int64_t end = n - i < 2048 ? n : i + 2048; /* 128 times two bytes in 16 bits */
        pairs sum = {0};
        for (; i + 16 <= end; i += 16) {
            bytes v;
            memcpy(&v, from + i, sizeof v);
            v ^= over;
            sum += ((pairs)v & 255) + ((pairs)v >> 8);
        }
        for (int q = 0; q < 8; q++) all += sum[q];
    }
    for (; i < n; i++) all += from[i] ^ over;
    return is_signed ? all - 128 * (uint32_t)n : all;
}
/* K by dot4 groups, where rows lie in no pieces: a group is what follows on in memory. Not where most of a
   group would be nothing. */
static int64_t find_dot4(const hone_contract *d, bool write) {
    int64_t groups = 0, in = 0;
    for (int64_t p = 0; p < d->of.k; p++) {
        if (!p || in == 4 || d->at_k_a[p] != d->at_k_a[p - 1] + 1) groups++, in = 0;
        if (write) {
            if (!in)
                d->i8->dot4_at[groups - 1] = d->at_k_a[p], d->i8->dot4_copied[groups - 1] = 4 * (groups - 1);
            ((uint8_t *)(d->i8->dot4_mask + groups - 1))[in] = 0xff,
                                                     d->i8->dot4_of[p] = 4 * (groups - 1) + in;
        }
        in++;
    }
    return groups;
}
bool hone_contract_int_dot4(hone_arena *arena, hone_contract *d) {
    const int64_t groups = find_dot4(d, false);
    if (d->of.piece || groups * 2 > d->of.k || d->of.m < 2) return true;
    d->i8->dot4_at = HONE_NEW_N(arena, int64_t, (size_t)(2 * groups + d->of.k)),
    d->i8->dot4_mask = HONE_NEW_N(arena, uint32_t, (size_t)groups);
    if (!d->i8->dot4_at || !d->i8->dot4_mask) return false;
    d->i8->dot4_copied = d->i8->dot4_at + groups, d->i8->dot4_of = d->i8->dot4_copied + groups,
    d->i8->dot4_groups = groups;
    find_dot4(d, true);
    bool moves = false;
    for (int k = 0; k < d->of.n_batch; k++)
        for (int q = 0; q < d->a.n_bounded; q++) moves |= d->by[k].edge[q] != 0;
    /* the last byte that is surely there, and so the last row whose groups may be read whole */
    const hone_standing w = {{0}, 0, 0, 0, 0, 0, 0, {0}};
    int64_t last = INT64_MIN / 2, far = 0;
    for (int64_t p = 0; p < d->of.k; p++) far = d->at_k_a[p] > far ? d->at_k_a[p] : far;
    for (int64_t i = 0; i < d->of.m && !moves; i++)
        if (d->at_m_a[i] + far > last && hone_contract_all_inside(d, &w, i)) last = d->at_m_a[i] + far;
    d->i8->direct_end = last;
    for (int64_t g = 0; g < groups; g++)
        d->i8->direct_end = last - d->i8->dot4_at[g] - 3 < d->i8->direct_end ? last - d->i8->dot4_at[g] - 3
                                                                             : d->i8->direct_end;
    uint8_t *whole = moves ? NULL : hone_arena_raw(arena, (size_t)d->of.m);
    if (!moves && !whole) return false;
    for (int64_t i = 0; i < d->of.m && whole; i++)
        whole[i] = d->at_m_a[i] <= d->i8->direct_end && hone_contract_all_inside(d, &w, i);
    d->i8->dot4_inside = whole;
    /* a matrix unit is worth copies where columns are many */
    if (moves || d->i8->flip_a || d->i8->a_signed || !d->i8->kernel->run_gathered ||
        (d->i8->kernel->run_direct && d->of.n > 2 * d->nr))
        return true;
    uint8_t *lies = hone_arena_raw(arena, (size_t)d->of.m);
    for (int64_t i = d->of.m - 1, run = 0; lies && i >= 0; i--) {
        if (i + 1 < d->of.m && d->at_m_a[i + 1] - d->at_m_a[i] != d->at_m_a[1] - d->at_m_a[0]) run = 0;
        run = d->at_m_a[i] <= d->i8->direct_end && hone_contract_all_inside(d, &w, i) ? run + 1 : 0;
        lies[i] = (uint8_t)(run < 255 ? run : 255);
    }
    d->i8->direct_run = lies;
    return lies != NULL;
}
/* Row m of A, all of K in a row: where it lies, or gathered in `line`, which has room for a few bytes
   more. */
const uint8_t *hone_contract_int_row(const hone_contract *d, const uint8_t *a, const hone_standing *w,
                                     int64_t m, int outside, uint8_t *line) {
    const uint8_t *row = a + d->at_m_a[m];
    const int64_t *at = d->at_k_a, piece = d->of.piece;
    const bool inside = d->outside ? !d->outside[m] : !d->a.n_bounded || hone_contract_all_inside(d, w, m);
    if (inside && piece && d->of.taps == 1) row += at[0];
    else if (piece) { /* a place of the window after another */
        for (int64_t p = 0; p < d->of.k; p += piece)
            if (inside || hone_contract_inside(d, w, m, p)) memcpy(line + p, row + at[p], (size_t)piece);
            else memset(line + p, outside, (size_t)piece);
        row = line;
    } else if (d->i8->dot4_groups) {
        const bool whole = inside && d->at_m_a[m] <= d->i8->direct_end;
        for (int64_t g = 0; g < d->i8->dot4_groups; g++) { /* what is no value of K is 0 */
            uint32_t four = 0;
            if (whole) memcpy(&four, row + d->i8->dot4_at[g], 4);
            four = (four ^ d->i8->flip_a * 0x01010101u) & d->i8->dot4_mask[g];
            memcpy(line + 4 * g, &four, 4);
        }
        int64_t from[HONE_MAX_BOUNDED];
        for (int q = 0; q < d->a.n_bounded; q++)
            from[q] = d->a.bounded[q].c + w->edge[q] + d->at_m_a_bounded[q][m];
        for (int64_t p = 0; p < d->of.k && !whole; p++) {
            bool out = false;
            for (int q = 0; q < d->a.n_bounded && !inside; q++)
                out |= (uint64_t)(from[q] + d->at_k_a_bounded[q][p]) >= (uint64_t)d->a.size[q];
            line[d->i8->dot4_of[p]] = (out ? (uint8_t)outside : row[at[p]]) ^ d->i8->flip_a;
        }
        return line;
    } else {
        for (int64_t p = 0; p < d->of.k; p++)
            line[p] = !inside && (d->outside ? d->outside[m] >> p & 1 : !hone_contract_inside(d, w, m, p))
                          ? (uint8_t)outside
                          : row[at[p]];
        row = line;
    }
    if (d->i8->flip_a) {
        for (int64_t p = 0; p < d->of.k; p++) line[p] = row[p] ^ d->i8->flip_a;
        row = line;
    }
    return row;
}
/* K bytes into row r of a panel, `deep` at a time, mr rows apart. */
static inline void few(uint8_t *to, const uint8_t *from, int64_t n) {
    for (; n >= 16; n -= 16, to += 16, from += 16) memcpy(to, from, 16);
    for (; n >= 4; n -= 4, to += 4, from += 4) memcpy(to, from, 4);
    for (; n > 0; n--) *to++ = *from++;
}
static void spread(const hone_contract *d, const uint8_t *row, int r, uint8_t *panel) {
    const int64_t deep = d->i8->kernel->deep, apart = d->mr * deep, k = hone_contract_int_depth(d);
    int64_t p = 0;
    panel += r * deep;
    if (deep == 64)
        for (; p + 64 <= k; p += 64, panel += apart) memcpy(panel, row + p, 64);
    else if (deep == 8)
        for (; p + 8 <= k; p += 8, panel += apart) memcpy(panel, row + p, 8);
    else if (deep == 4)
        for (; p + 4 <= k; p += 4, panel += apart) memcpy(panel, row + p, 4);
    for (; p < k; p += deep, panel += apart) few(panel, row + p, k - p < deep ? k - p : deep);
}
/* A panel of rows, n bytes of each that lie in a row, flip over them. n: whole steps of the kernel, or the
   last of K. */
enum { PANEL = 8, MOST_ROWS = 32 /* of any kernel's panel */ };
typedef uint64_t two __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));
#if defined(__clang__)
#define BESIDE(a, b, i, j) __builtin_shufflevector(a, b, i, j)
#define BESIDE4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define BESIDE(a, b, i, j) __builtin_shuffle(a, b, (two){i, j})
#define BESIDE4(a, b, i, j, k, l) __builtin_shuffle(a, b, (words){i, j, k, l})
#endif
static inline void flipped(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip) { /* a few */
    uint64_t v = 0;
    few((uint8_t *)&v, from, n);
    v ^= flip * 0x0101010101010101u;
    few(to, (const uint8_t *)&v, n);
}
/* Eight rows, 8 deep: two rows are a register, of 16 values of each a register is loaded. */
static void spread_eights(const uint8_t *const *row, int64_t n, uint8_t flip, uint8_t *panel) {
    const uint64_t over = flip * 0x0101010101010101u;
    int64_t p = 0;
    for (; p + 16 <= n; p += 16, panel += 16 * PANEL)
        for (int r = 0; r < PANEL; r += 2) {
            two a, b;
            memcpy(&a, row[r] + p, 16), memcpy(&b, row[r + 1] + p, 16);
            const two low = BESIDE(a, b, 0, 2) ^ over, high = BESIDE(a, b, 1, 3) ^ over;
            memcpy(panel + 8 * r, &low, 16), memcpy(panel + 8 * (r + PANEL), &high, 16);
        }
    for (; p < n; p += 8, panel += 8 * PANEL)
        for (int r = 0; r < PANEL; r++) flipped(panel + 8 * r, row[r] + p, n - p < 8 ? n - p : 8, flip);
}
/* Rows 4 deep, four at a time: 16 values of each are transposed as words of four. */
static void spread_words(const uint8_t *const *row, int rows, int64_t n, uint8_t flip, uint8_t *panel) {
    const uint32_t over = flip * 0x01010101u;
    const int64_t apart = 4 * rows, whole = n / 16 * 16;
    for (int r = 0; r + 4 <= rows; r += 4) {
        uint8_t *to = panel + 4 * r;
        for (int64_t p = 0; p < whole; p += 16, to += 4 * apart) {
            words a, b, c, d;
            memcpy(&a, row[r] + p, 16), memcpy(&b, row[r + 1] + p, 16), memcpy(&c, row[r + 2] + p, 16),
                memcpy(&d, row[r + 3] + p, 16);
            a ^= over, b ^= over, c ^= over, d ^= over;
            const words ab = BESIDE4(a, b, 0, 4, 1, 5), cd = BESIDE4(c, d, 0, 4, 1, 5),
                        ef = BESIDE4(a, b, 2, 6, 3, 7), gh = BESIDE4(c, d, 2, 6, 3, 7);
            const words out[4] = {BESIDE4(ab, cd, 0, 1, 4, 5), BESIDE4(ab, cd, 2, 3, 6, 7),
                                  BESIDE4(ef, gh, 0, 1, 4, 5), BESIDE4(ef, gh, 2, 3, 6, 7)};
            for (int q = 0; q < 4; q++) memcpy(to + q * apart, out + q, 16);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int64_t p = r < rows / 4 * 4 ? whole : 0; p < n; p += 4)
            flipped(panel + p / 4 * apart + 4 * r, row[r] + p, n - p < 4 ? n - p : 4, flip);
}
#undef BESIDE
#undef BESIDE4
/* Whether rows go into panels piece by piece, from where they lie. */
static bool by_pieces(const hone_contract *d) {
    const int deep = d->i8->kernel->deep;
    return d->of.piece && (d->of.taps == 1 || d->of.piece % deep == 0) && d->mr <= MOST_ROWS &&
           (deep == 4 || (deep == 8 && d->mr == PANEL));
}
/* Rows m0 … of a panel, and their sums. What is outside is read from `beyond`. Rows past the last are copies
   of it, which nobody reads. */
static void pack_pieces(const hone_contract *d, const uint8_t *a, const hone_standing *w, int64_t m0,
                        int64_t m, const uint8_t *beyond, uint8_t *panel, int32_t *sum) {
    const uint8_t *row[MOST_ROWS], *from[MOST_ROWS];
    bool inside[MOST_ROWS], all = true;
    uint32_t sums[MOST_ROWS] = {0};
    const int mr = (int)d->mr;
    for (int r = 0; r < mr; r++) {
        const int64_t i = m0 + (r < m ? r : m - 1);
        row[r] = a + d->at_m_a[i];
        inside[r] = d->outside ? !d->outside[i] : !d->a.n_bounded || hone_contract_all_inside(d, w, i),
        all &= inside[r];
    }
    for (int64_t p = 0; p < d->of.k; p += d->of.piece, panel += d->of.piece * mr) {
        for (int r = 0; r < mr; r++) from[r] = row[r] + d->at_k_a[p];
        for (int r = 0; !all && r < mr; r++)
            if (!inside[r] && !hone_contract_inside(d, w, m0 + (r < m ? r : m - 1), p)) from[r] = beyond;
        if (d->i8->kernel->deep == 4) spread_words(from, mr, d->of.piece, d->i8->flip_a, panel);
        else spread_eights(from, d->of.piece, d->i8->flip_a, panel);
        for (int r = 0; sum && r < m && r < mr; r++)
            sums[r] += sum_of(from[r], d->of.piece, d->i8->flip_a, d->i8->a_signed);
    }
    for (int r = 0; sum && r < m && r < mr; r++) sum[r] = (int32_t)sums[r];
}
/* The same of rows by dot4 groups, `apart` bytes from one to the next, that lie inside the image: what is no
   value of K may be anything, as it meets zeros in B. */
static inline void spread_dot4(const hone_contract *d, const uint8_t *row, ptrdiff_t apart, int rows,
                               uint8_t *panel) {
    if (d->i8->kernel->deep == 4) {
        const uint32_t over = d->i8->flip_a * 0x01010101u;
        for (int64_t g = 0; g < d->i8->dot4_groups; g++, panel += 4 * d->mr)
            for (int r = 0; r < rows; r++) {
                uint32_t four;
                memcpy(&four, row + d->i8->dot4_at[g] + r * apart, 4);
                four ^= over;
                memcpy(panel + 4 * r, &four, 4);
            }
        return;
    }
    for (int64_t g = 0; g < d->i8->dot4_groups; g += 2, panel += 8 * d->mr) {
        const uint8_t *low = row + d->i8->dot4_at[g],
                      *high = g + 1 < d->i8->dot4_groups ? row + d->i8->dot4_at[g + 1] : low;
        for (int r = 0; r < rows; r++)
            memcpy(panel + 8 * r, low + r * apart, 4), memcpy(panel + 8 * r + 4, high + r * apart, 4);
    }
}
/* Does row m lie inside the image, its groups of four and what they read too? And so many rows, equally far
   apart? */
static bool taken_whole(const hone_contract *d, const hone_standing *w, int64_t m) {
    if (d->i8->dot4_inside) return d->i8->dot4_inside[m];
    return (d->outside ? !d->outside[m] : hone_contract_all_inside(d, w, m)) &&
           d->at_m_a[m] <= d->i8->direct_end;
}
static bool evenly(const hone_contract *d, const hone_standing *w, int64_t m) {
    for (int r = 1; r < PANEL; r++)
        if (d->at_m_a[m + r] - d->at_m_a[m + r - 1] != d->at_m_a[m + 1] - d->at_m_a[m] ||
            !taken_whole(d, w, m + r))
            return false;
    return true;
}
/* Rows m0 … of A into panels, and their sums where these are asked for. What is past K must be 0 already. */
void hone_contract_int_pack_a(const hone_contract *d, const uint8_t *a, const hone_standing *w, int64_t m0,
                              int64_t m, int outside, uint8_t *panels, int32_t *sum, uint8_t *line) {
    const int64_t mr = d->mr, each = hone_contract_int_groups(d) * 4 * mr, k = hone_contract_int_depth(d);
    const int64_t deep = d->i8->kernel->deep;
    const bool whole = deep == 64 && d->of.piece && d->of.piece % 64 == 0 && d->of.taps > 1 &&
                       !d->i8->flip_a && !sum; /* pieces of a window go where they belong */
    if (by_pieces(d)) {
        if (d->a.n_bounded) memset(line, outside, (size_t)d->of.piece);
        for (int64_t i = 0; i < m; i += mr, panels += each)
            pack_pieces(d, a, w, m0 + i, m - i < mr ? m - i : mr, line, panels, sum ? sum + i : NULL);
        return;
    }
    const bool dot4 = mr == PANEL && (deep == 4 || (deep == 8 && !d->i8->flip_a)) && d->i8->dot4_groups &&
                      d->packed_b && !sum; /* rows that are taken as they are */
    for (int64_t i = 0; i < m; i++) {
        uint8_t *panel = panels + i / mr * each;
        if (whole) {
            const uint8_t *row = a + d->at_m_a[m0 + i];
            const bool inside =
                d->outside ? !d->outside[m0 + i] : !d->a.n_bounded || hone_contract_all_inside(d, w, m0 + i);
            for (int64_t p = 0; p < k; p += 64) {
                uint8_t *to = panel + i % mr * 64 + p * mr;
                if (inside || hone_contract_inside(d, w, m0 + i, p)) memcpy(to, row + d->at_k_a[p], 64);
                else memset(to, outside, 64);
            }
            continue;
        }
        if (dot4 && taken_whole(d, w, m0 + i)) {
            const uint8_t *row = a + d->at_m_a[m0 + i];
            const bool all = i % PANEL == 0 && i + PANEL <= m && evenly(d, w, m0 + i);
            if (all)
                spread_dot4(d, row, (ptrdiff_t)(d->at_m_a[m0 + i + 1] - d->at_m_a[m0 + i]), PANEL, panel),
                    i += PANEL - 1;
            else spread_dot4(d, row, 0, 1, panel + i % mr * deep);
            continue;
        }
        /* what is past K meets zeros in B */
        uint8_t *own = k < deep && d->packed_b ? panel + i % mr * deep : line;
        const uint8_t *row = hone_contract_int_row(d, a, w, m0 + i, outside, own);
        if (row != own || own == line) spread(d, row, (int)(i % mr), panel);
        if (sum) sum[i] = (int32_t)sum_of(row, k, 0, d->i8->a_signed);
    }
}
/* Two groups of four of all columns, one after another, as groups of eight. */
static void eights(uint8_t *at, int64_t nr) {
    uint32_t two[2 * 64];
    memcpy(two, at, (size_t)(8 * nr));
    for (int64_t j = 0; j < nr; j++) memcpy(at + 8 * j, two + j, 4), memcpy(at + 8 * j + 4, two + nr + j, 4);
}
/* Where value k of column j is in a panel of B. */
static int64_t in_panel(const hone_contract *d, int64_t k, int64_t j) {
    const int group = d->i8->kernel->group;
    return (k / group * d->nr + j) * group + k % group;
}
/* Keys of attention: a column's values of K lie in a row, so that it is a row of a panel of A. */
static bool k_follows(const hone_contract *d) {
    if (d->b.n_bounded || (d->i8->kernel->group == 8 && d->nr != PANEL)) return false;
    for (int64_t k = 1; k < d->of.k; k++)
        if (d->at_k_b[k] != d->at_k_b[0] + k) return false;
    return d->of.k > 1 && d->nr <= MOST_ROWS;
}
static void pack_columns(const hone_contract *d, const uint8_t *b, int64_t n0, int64_t n, uint8_t *panels) {
    const int64_t nr = d->nr, each = hone_contract_int_groups(d) * 4 * nr;
    const uint8_t *column[MOST_ROWS];
    for (int64_t j = 0; j < n; j += nr, panels += each) {
        for (int64_t q = 0; q < nr; q++) {
            const int64_t c = n0 + (j + q < n ? j + q : n - 1); /* columns past the last are copies of it */
            column[q] = b + d->at_row_b[c / d->of.run] + c % d->of.run * d->of.run_step + d->at_k_b[0];
        }
        if (d->i8->kernel->group == 8) spread_eights(column, d->of.k, d->i8->flip_b, panels);
        else spread_words(column, (int)nr, d->of.k, d->i8->flip_b, panels);
    }
}
/* Columns n0 … n0+nt-1 of B into panels, all of K. line: room for four rows of nt bytes. What is past K may
   be anything: A is 0 there. */
void hone_contract_int_pack_b(const hone_contract *d, const uint8_t *b, int64_t n0, int64_t nt, int outside,
                              uint8_t *panels, uint8_t *line) {
    int64_t nr = d->nr, groups = hone_contract_int_groups(d), have = d->of.n - n0 < nt ? d->of.n - n0 : nt,
            n_panel = hone_ceil_div(nt, nr);
    bool plain = !d->b.n_bounded && d->of.run_step == 1 && d->of.rows == 1;
    if (n_panel * nr > have) /* the columns that are not there */
        memset(panels + (n_panel - 1) * groups * 4 * nr, 0, (size_t)(groups * 4 * nr));
    if (k_follows(d)) { /* columns whose values of K lie in a row: words of four are moved */
        pack_columns(d, b, n0, have, panels);
        return;
    }
    for (int64_t p = 0; p < (d->of.k + 3) / 4; p++) {
        const uint8_t *row[4];
        for (int q = 0; q < 4; q++) {
            int64_t k = 4 * p + q < d->of.k ? 4 * p + q : d->of.k - 1;
            if (plain) row[q] = b + d->at_k_b[k] + n0;
            else {
                row[q] = line + q * nt;
                hone_contract_gather(d, b, k, n0, have, 1, outside, line + q * nt);
            }
        }
        for (int64_t j = 0; j < n_panel; j++) {
            const uint8_t *from[4] = {row[0] + j * nr, row[1] + j * nr, row[2] + j * nr, row[3] + j * nr};
            hone_interleave4(from, have - j * nr < nr ? have - j * nr : nr, d->i8->flip_b,
                             panels + (j * groups + p) * 4 * nr);
        }
    }
    for (int64_t p = 0; d->i8->kernel->group == 8 && p < n_panel * groups; p += 2)
        eights(panels + p * 4 * nr, nr);
}
/* Sums of a panel's columns, as the kernel sees its bytes: four columns' words at a time, two bytes of each
   in 16 bits. Bytes past K, which may be anything, are masked. */
void hone_contract_int_column_sums(const hone_contract *d, const uint8_t *panel, int32_t *sum) {
    const int64_t group = d->i8->kernel->group, depth = hone_contract_int_depth(d),
                  steps = hone_ceil_div(depth, group), apart = d->nr * group;
    const uint32_t over = d->i8->b_signed ? 0x80808080u : 0, half = group / 4;
    memset(sum, 0, sizeof *sum * (size_t)d->nr);
    for (int64_t at = 0; at < apart; at += 16) {
        uint32_t all[4] = {0};
        for (int64_t p = 0; p < steps;) {
            const int64_t end = steps - p < 128 ? steps : p + 128; /* 128 times two bytes in 16 bits */
            words pairs = {0};
            for (; p < end; p++) {
                words v;
                memcpy(&v, panel + p * apart + at, sizeof v);
                v ^= over;
                if ((p + 1) * group > depth) { /* the last one */
                    uint8_t byte[16];
                    memcpy(byte, &v, sizeof v);
                    for (int q = 0; q < 16; q++) byte[q] = p * group + (at + q) % group < depth ? byte[q] : 0;
                    memcpy(&v, byte, sizeof v);
                }
                pairs += (v & 0x00ff00ffu) + (v >> 8 & 0x00ff00ffu);
            }
            for (int q = 0; q < 4; q++) all[q] += (pairs[q] & 0xffff) + (pairs[q] >> 16);
        }
        for (uint32_t q = 0; q < 4; q++) {
            int32_t *to = sum + ((uint32_t)at / 4 + q) / half;
            *to = (int32_t)((uint32_t)*to + all[q]);
        }
    }
    for (int j = 0; d->i8->b_signed && j < d->nr; j++)
        sum[j] = (int32_t)((uint32_t)sum[j] - 128 * (uint32_t)depth);
}
/* Of a constant A: rows past M are 0. */
static void constant_rows(const hone_contract *d, const uint8_t *a, int64_t m0, uint8_t *panel,
                          int32_t *sum) {
    const int deep = d->i8->kernel->deep;
    for (int64_t r = 0; r < d->mr && m0 + r < d->of.m; r++) {
        uint32_t all = 0;
        for (int64_t p = 0; p < d->of.k; p++) {
            const uint8_t v = a[d->at_m_a[m0 + r] + d->at_k_a[p]] ^ d->i8->flip_a;
            panel[(p / deep * d->mr + r) * deep + p % deep] = v,
                                                      all += d->i8->a_signed ? (uint32_t)(int8_t)v : v;
        }
        sum[r] = (int32_t)all;
    }
}
/* Of a constant B by dot4 groups: what is no value of K is 0. */
static void constant_dot4(const hone_contract *d, const uint8_t *b, int64_t n0, uint8_t *panel) {
    for (int64_t j = n0; j < n0 + d->nr && j < d->of.n; j++)
        for (int64_t p = 0; p < d->of.k; p++)
            panel[in_panel(d, d->i8->dot4_of[p], j - n0)] =
                b[d->at_row_b[j / d->of.run] + j % d->of.run * d->of.run_step + d->at_k_b[p]] ^ d->i8->flip_b;
}
void hone_contract_int_fill(const hone_contract *d, bool a, const uint8_t *source, void *dst) {
    if (d->dwconv_i8) {
        hone_dwconv_int_fill(d, source, dst);
        return;
    }
    int64_t each = hone_contract_int_groups(d) * 4 * (a ? d->mr : d->nr),
            n = a ? hone_ceil_div(d->of.m, d->mr) : hone_ceil_div(d->of.n, d->nr);
    int64_t batches = a ? d->of.batch_a : d->of.batch_b;
    int32_t *sum = (int32_t *)(void *)((uint8_t *)dst + batches * n * each);
    uint8_t line[4 * 64];
    if (a || d->i8->dot4_groups) memset(dst, 0, (size_t)(batches * n * (each + 4 * (a ? d->mr : d->nr))));
    for (int64_t b = 0; b < batches; b++)
        for (int64_t p = 0; p < n; p++) {
            uint8_t *panel = (uint8_t *)dst + (b * n + p) * each;
            const uint8_t *own = source + hone_contract_own(d, b, a);
            if (a) constant_rows(d, own, p * d->mr, panel, sum + (b * n + p) * d->mr);
            else {
                if (d->i8->dot4_groups) constant_dot4(d, own, p * d->nr, panel);
                else hone_contract_int_pack_b(d, own, p * d->nr, d->nr, 0, panel, line);
                for (int64_t k = hone_contract_int_depth(d); k < hone_contract_int_deep(d);
                     k++) /* rows of A that are read as they lie have something there */
                    for (int j = 0; j < d->nr; j++) panel[in_panel(d, k, j)] = 0;
                hone_contract_int_column_sums(d, panel, sum + (b * n + p) * d->nr);
            }
        }
}
