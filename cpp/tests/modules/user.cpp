import effects;

static int body() {
    return get() + get();
}
int main() {
    return with(body, 4) == 8 ? 0 : 1;
}
// SPDX-License-Identifier: MIT
