// Sums of rows, of which each is computed by `push.across` neighbouring threads of a workgroup.

struct Sums { float first, second; };

shared float first_of[256];
shared float second_of[256];

// The sums of all threads of a row.
Sums total(float first, float second) {
    uint lane = gl_LocalInvocationID.x, at = lane % push.across;
    barrier();
    first_of[lane] = first;
    second_of[lane] = second;
    barrier();
    for (uint other = push.across / 2; other > 0; other /= 2) {
        if (at < other) {
            first_of[lane] = first_of[lane] + first_of[lane + other];
            second_of[lane] = second_of[lane] + second_of[lane + other];
        }
        barrier();
    }
    Sums sums;
    sums.first = first_of[lane - at];
    sums.second = second_of[lane - at];
    return sums;
}
