// Products of matrices, a tile at a time. Whoever includes it has where elements are, or NONE outside of the matrices:
// `a_index(batch, i, k)` and `b_index(batch, j, k)`; whether memory goes along `k`: A_ALONG_K and B_ALONG_K; their TYPE; and
// what becomes of a sum: `finish(batch, i, j, sum)`. `multiply(batch, row, column, from, to)` sums over `k`.
#ifdef COOPERATIVE
#include "cooperative.glsl"
#else
#include "tile.glsl"
#endif

// All tiles of `rows` x `columns` results, `batches` times. There may be more of them than workgroups.
#define FOR_EACH_TILE(batches, rows, columns) \
    for (uint batch = gl_WorkGroupID.z; batch < (batches); batch += gl_NumWorkGroups.z) \
        for (uint row = gl_WorkGroupID.y * TILE; row < (rows); row += gl_NumWorkGroups.y * TILE) \
            for (uint column = gl_WorkGroupID.x * TILE; column < (columns); column += gl_NumWorkGroups.x * TILE)
