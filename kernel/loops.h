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

/* How many bits are set in all of several bitmaps. */
TARGET static uint64_t NAME(ones_in_all)(const word **maps, Py_ssize_t maps_many, Py_ssize_t many)
{
    word block[CHUNK];
    uint64_t total = 0;
    for (Py_ssize_t start = 0; start < many; start += CHUNK) {
        Py_ssize_t size = many - start < CHUNK ? many - start : CHUNK;
        for (Py_ssize_t i = 0; i < size; i++)
            block[i] = maps[0][start + i];
        for (Py_ssize_t map = 1; map + 1 < maps_many; map++)
            for (Py_ssize_t i = 0; i < size; i++)
                block[i] &= maps[map][start + i];
        total += NAME(ones_in_both)(block, maps[maps_many - 1] + start, size);
    }
    return total;
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

/* Which codes lie in [low, high], for codes of each width: one word for 64 codes. */
#define CODES_BETWEEN(width)                                                                       \
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
CODES_BETWEEN(8)
CODES_BETWEEN(16)
CODES_BETWEEN(32)
CODES_BETWEEN(64)
#undef CODES_BETWEEN
