/* The loops themselves, compiled once for each kind of processor.
 *
 * module.c includes this file several times.  NAME(x) gives each copy names of its own, and TARGET
 * says which instructions it may use.  All of it is arithmetic on whole numbers, so every copy
 * gives the same results, and so does numpy.
 */

/* Sums of codes: how many of the words' bits are set in one bitmap. */
TARGET static uint64_t NAME(ones_in_both)(const word *left, const word *right, Py_ssize_t many)
{
    uint64_t total = 0;
    for (Py_ssize_t i = 0; i < many; i++)
        total += ones_of(left[i] & right[i]);
    return total;
}

/* The words of several bitmaps combined, from `start` on; of none, all bits. */
TARGET static void NAME(all_of)(const word *const *maps, Py_ssize_t many, Py_ssize_t start,
                                Py_ssize_t size, word *block)
{
    for (Py_ssize_t i = 0; i < size; i++)
        block[i] = many ? maps[0][start + i] : ~(uint64_t)0;
    for (Py_ssize_t map = 1; map < many; map++)
        for (Py_ssize_t i = 0; i < size; i++)
            block[i] &= maps[map][start + i];
}

/* Eight bytes that are 0 or 1 as eight bits: each product bit has one summand, so none carries. */
#ifndef PACKED
#define PACKED 1
static inline uint64_t packed_octets(const uint8_t *truths)
{
    uint64_t found = 0;
    for (int octet = 0; octet < 8; octet++) {
        uint64_t eight;
        memcpy(&eight, truths + 8 * octet, 8);
        found |= (eight * 0x0102040810204080u >> 56) << 8 * octet;
    }
    return found;
}
#endif

/* Which codes lie in [low, high], for codes of each width: one word for 64 codes.
 *
 * One comparison does both: below low, the difference wraps around to a large number.
 */
#ifdef WITH_MASKS /* comparisons give bits */
#define CODES_BETWEEN(width, a_time)                                                               \
    TARGET static void NAME(between_##width)(const codes_##width *codes, Py_ssize_t words,         \
                                             uint64_t least, uint64_t most, word *found)           \
    {                                                                                              \
        __m512i low = set_all_##width(least), reach = set_all_##width(most - least);               \
        for (Py_ssize_t at = 0; at < words; at++) {                                                \
            uint64_t bits = 0;                                                                     \
            for (int i = 0; i < 64; i += a_time) {                                                 \
                __m512i some = _mm512_sub_epi##width(_mm512_loadu_si512(codes + 64 * at + i), low); \
                bits |= (uint64_t)_mm512_cmple_epu##width##_mask(some, reach) << i;                \
            }                                                                                      \
            found[at] = bits;                                                                      \
        }                                                                                          \
    }
#else
#define CODES_BETWEEN(width, a_time)                                                               \
    TARGET static void NAME(between_##width)(const codes_##width *codes, Py_ssize_t words,         \
                                             uint64_t least, uint64_t most, word *found)           \
    {                                                                                              \
        uint##width##_t low = (uint##width##_t)least, reach = (uint##width##_t)(most - least);     \
        uint8_t truths[64];                                                                        \
        for (Py_ssize_t at = 0; at < words; at++) {                                                \
            for (int i = 0; i < 64; i++)                                                           \
                truths[i] = (uint##width##_t)(codes[64 * at + i] - low) <= reach;                  \
            found[at] = packed_octets(truths);                                                     \
        }                                                                                          \
    }
#endif
CODES_BETWEEN(8, 64)
CODES_BETWEEN(16, 32)
CODES_BETWEEN(32, 16)
CODES_BETWEEN(64, 8)
#undef CODES_BETWEEN

/* The same for codes of any width: the slots of a range. */
TARGET static void NAME(in_range)(const struct range *range, Py_ssize_t at, Py_ssize_t words, word *found)
{
    const char *first = (const char *)range->codes.buf + 64 * range->width * at;
    if (range->width == 1)
        NAME(between_8)((const codes_8 *)first, words, range->low, range->high, found);
    else if (range->width == 2)
        NAME(between_16)((const codes_16 *)first, words, range->low, range->high, found);
    else if (range->width == 4)
        NAME(between_32)((const codes_32 *)first, words, range->low, range->high, found);
    else
        NAME(between_64)((const codes_64 *)first, words, range->low, range->high, found);
}

/* How many people have a slot that is set in all of several bitmaps and lies in several ranges.
 *
 * Up to the word `one_row` each slot is a person; from there on `inner` are all slots but the last
 * one of each person, and a carry through them finds who has one (src/tacit/tables/encoded/layout.py).
 * A range is tested only on the slots that are left, if those are few.
 */
TARGET static uint64_t NAME(people_in_all)(const struct conjunction *all, const word *inner,
                                           Py_ssize_t one_row, Py_ssize_t words)
{
    word block[CHUNK], found[CHUNK];
    uint64_t total = 0;
    for (Py_ssize_t start = 0, size; start < words; start += size) {
        Py_ssize_t end = start < one_row ? one_row : words;
        size = end - start < CHUNK ? end - start : CHUNK;
        NAME(all_of)(all->maps, all->maps_many, start, size, block);
        for (Py_ssize_t i = 0; i < all->ranges_many; i++) {
            uint64_t left = NAME(ones_in_both)(block, block, size);
            if (left == 0)
                break;
            if (left * FEW <= 64 * (uint64_t)size) {
                keep_in_range(block, size, all->ranges + i, start);
                continue;
            }
            NAME(in_range)(all->ranges + i, start, size, found);
            for (Py_ssize_t j = 0; j < size; j++)
                block[j] &= found[j];
        }
        if (start >= one_row) {
            const word *within = inner + (start - one_row);
            for (Py_ssize_t i = 0; i < size; i++)
                block[i] = (((block[i] & within[i]) + within[i]) | block[i]) & ~within[i];
        }
        total += NAME(ones_in_both)(block, block, size);
    }
    return total;
}
