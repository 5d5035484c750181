#version 460
// Inverses of square matrices, by Gauss and Jordan with the largest pivot of a column. A workgroup takes a matrix: `work` has it and,
// on the right, what becomes its inverse.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const bool IS_TRANSPOSED = false;

// What one thread writes and another reads.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer C32 { uint v[]; };

layout(push_constant, scalar) uniform Push {
    uint64_t in_, work, out_;
    // Matrices, and their rows.
    uint n, size;
} push;

shared float best[256];
shared uint rows[256];

float at(uint i) { return uintBitsToFloat(C32(push.work).v[i]); }
void set(uint i, float x) { C32(push.work).v[i] = floatBitsToUint(x); }

// Each thread finds the largest of some rows of a column; the largest of these is behind the loop in the first place.
void find(uint first, uint column) {
    uint lane = gl_LocalInvocationID.x, wide = 2 * push.size;
    float most = -1.0f;
    uint row = column;
    for (uint i = column + lane; i < push.size; i += 256) {
        float x = abs(at(first + i * wide + column));
        if (x > most) {
            most = x;
            row = i;
        }
    }
    best[lane] = most;
    rows[lane] = row;
    barrier();
    for (uint other = 128; other > 0; other /= 2) {
        if (lane < other && best[lane + other] > best[lane]) {
            best[lane] = best[lane + other];
            rows[lane] = rows[lane + other];
        }
        barrier();
    }
}

void main() {
    uint lane = gl_LocalInvocationID.x, size = push.size, wide = 2 * size;
    for (uint matrix = gl_WorkGroupID.x; matrix < push.n; matrix += gl_NumWorkGroups.x) {
        uint first = matrix * size * wide, from = matrix * size * size;
        for (uint i = lane; i < size * wide; i += 256) {
            uint row = i / wide, column = i % wide;
            float x = column == row + size ? 1.0f : 0.0f;
            if (column < size) x = F32(push.in_).v[from + (IS_TRANSPOSED ? column * size + row : row * size + column)];
            set(first + i, x);
        }
        memoryBarrierBuffer();
        barrier();
        for (uint k = 0; k < size; k++) {
            find(first, k);
            uint row = first + k * wide, other = first + rows[0] * wide;
            float pivot = at(other + k), own = at(row + k);
            barrier();
            for (uint j = k + 1 + lane; j < wide; j += 256) {
                float x = at(other + j), y = at(row + j);
                if (other != row) set(other + j, y);
                set(row + j, x / pivot);
            }
            if (lane == 0 && other != row) set(other + k, own);
            memoryBarrierBuffer();
            barrier();
            uint columns = wide - k - 1;
            for (uint i = lane; i < size * columns; i += 256) {
                uint at_row = first + i / columns * wide, j = k + 1 + i % columns;
                if (at_row != row) set(at_row + j, at(at_row + j) - at(at_row + k) * at(row + j));
            }
            memoryBarrierBuffer();
            barrier();
        }
        for (uint i = lane; i < size * size; i += 256) F32(push.out_).v[from + i] = at(first + i / size * wide + size + i % size);
        barrier();
    }
}
