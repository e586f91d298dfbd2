/* The deep search for shattered sets, compiled once for each kind of processor.
 *
 * shattering.c includes this file several times, as module.c does loops.h; see there for NAME and
 * TARGET, and numerics/shattered_sets.py for what is searched and why it is exact.
 *
 * A node is a set of points with its cells, each a mask of rows, and its candidates, a bitmap of
 * points.  Candidates are tried from the last to the first, each with the candidates after it.  So,
 * when a node of three or more points is reached, it is already known for every pair of its points
 * which third ones may join the pair: a few words combined leave few candidates to test.
 */

/* Bit j of line i becomes bit i of line j. */
TARGET static void NAME(transpose)(uint64_t *lines)
{
    uint64_t low = 0x00000000ffffffffu;
    for (int half = 32; half; half >>= 1, low ^= low << half)
        for (int i = 0; i < 64; i = ((i | half) + 1) & ~half) {
            uint64_t other = ((lines[i] >> half) ^ lines[i | half]) & low;
            lines[i] ^= other << half;
            lines[i | half] ^= other;
        }
}

/* A line of points for each row, from a line of rows for each point. */
TARGET static void NAME(turn)(const struct search *search, const word *columns, uint64_t *rows)
{
    Py_ssize_t words = search->row_words, many = search->point_words;
    uint64_t lines[64];
    for (Py_ssize_t block = 0; block < many; block++)
        for (Py_ssize_t w = 0; w < words; w++) {
            for (int i = 0; i < 64; i++) {
                Py_ssize_t point = 64 * block + i;
                lines[i] = point < search->points ? columns[point * words + w] : 0;
            }
            NAME(transpose)(lines);
            for (int i = 0; i < 64; i++)
                rows[(64 * w + i) * many + block] = lines[i];
        }
}

/* The columns of the points from `first` on, of the packed rows alone. */
TARGET static void NAME(pack_columns)(const struct search *search, const uint64_t *rows,
                                      const struct packed *to, uint64_t *columns, Py_ssize_t first)
{
    Py_ssize_t many = search->point_words;
    uint64_t lines[64];
    for (Py_ssize_t block = first / 64; block < many; block++)
        for (Py_ssize_t w = 0; w < to->words; w++) {
            for (int i = 0; i < 64; i++) {
                int32_t row = to->rows[64 * w + i];
                lines[i] = row < 0 ? 0 : rows[row * many + block];
            }
            NAME(transpose)(lines);
            for (int i = 0; i < 64 && 64 * block + i < search->points; i++)
                columns[(64 * block + i) * to->words + w] = lines[i];
        }
}

/* Give every cell of a node words of its own, `length` for each, and the columns the same order of
 * rows: a cell of 50 rows among 200 is then one word instead of four. */
TARGET static void NAME(pack)(const struct search *search, struct level *node, struct packed *to,
                              int32_t length, Py_ssize_t first)
{
    to->words = (Py_ssize_t)node->cells * length;
    for (Py_ssize_t i = 0; i < 64 * to->words; i++)
        to->rows[i] = -1;
    for (int32_t cell = 0; cell < node->cells; cell++) {
        int32_t *row = to->rows + (Py_ssize_t)64 * length * cell;
        for (int32_t w = 0; w < node->length; w++)
            for (uint64_t left = node->masks[(Py_ssize_t)cell * node->length + w]; left;
                 left &= left - 1)
                *row++ = node->columns->rows[64 * (Py_ssize_t)(node->at[cell] + w) +
                                             first_one(left)];
    }
    for (int32_t cell = 0; cell < node->cells; cell++) {
        node->at[cell] = cell * length;
        for (int32_t w = 0; w < length; w++) {
            int32_t ones = node->size[cell] - 64 * w;
            node->masks[(Py_ssize_t)cell * length + w] =
                ones >= 64 ? ~(uint64_t)0 : ones > 0 ? ((uint64_t)1 << ones) - 1 : 0;
        }
    }
    node->length = length;
    node->columns = to;
    NAME(pack_columns)(search, search->rows_above, to, to->above, first);
    if (search->rows_below)
        NAME(pack_columns)(search, search->rows_below, to, to->below, first);
}

/* Does the point leave at least `need` rows of every cell on both sides?  Cells of one word. */
TARGET static inline int NAME(cuts_words)(const struct level *node, Py_ssize_t point, int32_t need)
{
    const uint64_t *above = node->columns->above + point * node->columns->words;
    if (node->columns->below) {
        const uint64_t *below = node->columns->below + point * node->columns->words;
        for (int32_t cell = 0; cell < node->cells; cell++) {
            int32_t inside = (int32_t)ones_of(node->masks[cell] & above[node->at[cell]]);
            int32_t outside = (int32_t)ones_of(node->masks[cell] & below[node->at[cell]]);
            if ((inside < need) | (outside < need))
                return 0;
        }
        return 1;
    }
    for (int32_t cell = 0; cell < node->cells; cell++) {
        int32_t inside = (int32_t)ones_of(node->masks[cell] & above[node->at[cell]]);
        if ((inside < need) | (node->size[cell] - inside < need))
            return 0;
    }
    return 1;
}

/* The same for cells of several words. */
TARGET static inline int NAME(cuts)(const struct level *node, Py_ssize_t point, int32_t need)
{
    const uint64_t *above = node->columns->above + point * node->columns->words;
    const uint64_t *below = node->columns->below;
    if (below)
        below += point * node->columns->words;
    for (int32_t cell = 0; cell < node->cells; cell++) {
        const uint64_t *mask = node->masks + (Py_ssize_t)cell * node->length;
        int32_t at = node->at[cell], inside = 0, outside = 0;
        for (int32_t w = 0; w < node->length; w++)
            inside += (int32_t)ones_of(mask[w] & above[at + w]);
        for (int32_t w = 0; below && w < node->length; w++)
            outside += (int32_t)ones_of(mask[w] & below[at + w]);
        if (!below)
            outside = node->size[cell] - inside;
        if (inside < need || outside < need)
            return 0;
    }
    return 1;
}

/* Drop the candidates that leave fewer than `need` rows somewhere; how many are left. */
TARGET static Py_ssize_t NAME(keep_cutting)(struct search *search, struct level *node,
                                            int32_t need)
{
    Py_ssize_t many = 0;
    for (Py_ssize_t w = 0; w < search->point_words; w++) {
        uint64_t kept = node->candidates[w];
        for (uint64_t left = kept; left; left &= left - 1) {
            int bit = first_one(left);
            Py_ssize_t point = 64 * w + bit;
            int good = node->length == 1 ? NAME(cuts_words)(node, point, need)
                                         : NAME(cuts)(node, point, need);
            kept ^= (uint64_t)!good << bit;
            search->work += (Py_ssize_t)node->cells * node->length;
        }
        node->candidates[w] = kept;
        many += (int32_t)ones_of(kept);
    }
    return many;
}

/* The candidates after `point` that may be in one set with it and all that were chosen. */
TARGET static Py_ssize_t NAME(narrow)(struct search *search, int depth, Py_ssize_t point)
{
    const struct level *node = search->levels + depth;
    uint64_t *found = search->levels[depth + 1].candidates;
    Py_ssize_t first = point / 64, end = search->point_words, many = 0;
    for (Py_ssize_t w = 0; w < first; w++)
        found[w] = 0;
    for (Py_ssize_t w = first; w < end; w++)
        found[w] = node->candidates[w];
    found[first] &= ~(uint64_t)1 << point % 64; /* all bits after it; none after the last */
    if (search->triples && depth > 1)
        for (int chosen = 0; chosen < depth; chosen++) {
            const uint64_t *third = triples_of(search, search->levels[chosen].point, point);
            for (Py_ssize_t w = first; w < end; w++)
                found[w] &= third[w];
        }
    else if (search->link)
        for (Py_ssize_t w = first; w < end; w++)
            found[w] &= search->link[point * end + w];
    for (Py_ssize_t w = first; w < end; w++)
        many += (int32_t)ones_of(found[w]);
    return many;
}

/* Both halves of every cell: first all the smaller ones, because a candidate that fails most often
 * fails at a cell with few rows to spare. */
TARGET static void NAME(split)(struct search *search, const struct level *node,
                               struct level *child, Py_ssize_t point)
{
    const uint64_t *above = node->columns->above + point * node->columns->words;
    const uint64_t *below = node->columns->below;
    if (below)
        below += point * node->columns->words;
    int32_t cells = node->cells, length = node->length;
    for (int32_t cell = 0; cell < cells; cell++) {
        const uint64_t *mask = node->masks + (Py_ssize_t)cell * length;
        int32_t at = node->at[cell], inside = 0, outside = 0;
        for (int32_t w = 0; w < length; w++) {
            inside += (int32_t)ones_of(mask[w] & above[at + w]);
            outside += (int32_t)ones_of(mask[w] & (below ? below[at + w] : ~above[at + w]));
        }
        int32_t up = inside <= outside ? cell : cells + cell, down = cells + 2 * cell - up;
        child->at[up] = child->at[down] = at;
        child->size[up] = inside;
        child->size[down] = outside;
        for (int32_t w = 0; w < length; w++) {
            child->masks[(Py_ssize_t)up * length + w] = mask[w] & above[at + w];
            child->masks[(Py_ssize_t)down * length + w] =
                mask[w] & (below ? below[at + w] : ~above[at + w]);
        }
    }
    child->cells = 2 * cells;
    child->length = length;
    child->columns = node->columns;
    search->work += 4 * (Py_ssize_t)cells * length;
}

/* Pack a node's cells anew if that shortens them by enough to be worth it. */
TARGET static void NAME(shorten)(struct search *search, int depth, Py_ssize_t many, int left)
{
    struct level *node = search->levels + depth;
    int32_t length = words_for(largest_cell(node));
    if (node->length == 1 || depth >= PACKINGS || length >= node->length)
        return;
    if (depth > 1 && (many < 64 || left < 3 || 2 * length > node->length ||
                      (Py_ssize_t)node->cells * length > search->most_words))
        return;
    NAME(pack)(search, node, search->packings + depth, length, search->levels[depth - 1].point);
    search->work += 16 * search->point_words * search->packings[depth].words;
}

/* `left` more points below the node at this depth, whose candidates all pass its cells. */
TARGET static int NAME(extend)(struct search *search, int depth, int left)
{
    struct level *node = search->levels + depth, *child = node + 1;
    for (Py_ssize_t w = search->point_words - 1; w >= 0; w--)
        for (uint64_t rest = node->candidates[w]; rest; rest ^= (uint64_t)1 << node->point % 64) {
            node->point = 64 * w + last_one(rest);
            if (left == 1)
                return FOUND;
            /* Pairs that lead no further themselves still say which third points may join them. */
            int fills = search->triples && depth < 2;
            Py_ssize_t many = NAME(narrow)(search, depth, node->point);
            if (many < left - 1 && !fills)
                continue;
            NAME(split)(search, node, child, node->point);
            NAME(shorten)(search, depth + 1, many, left - 1);
            many = NAME(keep_cutting)(search, child, (int32_t)1 << (left - 2));
            if (fills && depth == 1)
                memcpy(triples_of(search, search->levels[0].point, node->point),
                       child->candidates, 8 * search->point_words);
            if (search->work > WORK && !in_time(search))
                return FAILED;
            if (many < left - 1 && !(fills && depth == 0))
                continue;
            int outcome = NAME(extend)(search, depth + 1, left - 1);
            if (outcome != NONE)
                return outcome;
        }
    return NONE;
}

/* The whole search: turn the columns, pack the cells, drop what fails at once, and descend. */
TARGET static int NAME(find)(struct search *search, const word *above, const word *below, int left)
{
    struct level *root = search->levels;
    NAME(turn)(search, above, search->rows_above);
    if (below)
        NAME(turn)(search, below, search->rows_below);
    NAME(pack)(search, root, search->packings, words_for(largest_cell(root)), 0);
    Py_ssize_t many = NAME(keep_cutting)(search, root, (int32_t)1 << (left - 1));
    return many < left ? NONE : NAME(extend)(search, 0, left);
}
