// SPDX-License-Identifier: MIT
// File streams and std::filesystem of C++, which know nothing of a simulation, use its files.
#include "../../tests/check_io.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace fs = std::filesystem;

static std::string first_line_of(const fs::path &path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

static void *use_files(void *) {
    fs::create_directories("/a/b");
    std::ofstream("/a/b/file") << "one\ntwo\n" << std::string(100'000, 'x') << "\n";
    CHECK(fs::file_size("/a/b/file") == 100'009);
    CHECK_SAME_TEXT(first_line_of("/a/b/file").c_str(), "one");
    std::fstream both("/a/b/file", std::ios::in | std::ios::out | std::ios::ate);
    both << "end";
    both.seekg(-5, std::ios::end);
    std::string line, more;
    std::getline(both, line);
    std::getline(both, more);
    CHECK(line == "x" && more == "end");
    both.close();

    fs::copy("/a", "/c", fs::copy_options::recursive);
    fs::rename("/c/b/file", "/c/moved");
    fs::resize_file("/c/moved", 2);
    CHECK_SAME_TEXT(first_line_of("/c/moved").c_str(), "on");
    std::set<fs::path> found;
    for (const auto &entry : fs::recursive_directory_iterator("/"))
        found.insert(entry.path());
    CHECK((found == std::set<fs::path>{"/a", "/a/b", "/a/b/file", "/c", "/c/b", "/c/moved"}));
    CHECK(fs::canonical("/c/b/../moved") == "/c/moved" && !fs::exists("/etc"));
    fs::current_path("/c");
    CHECK(fs::current_path() == "/c" && fs::exists("moved"));
    CHECK(fs::remove_all("/a") == 3);
    return nullptr;
}

static void files_are_simulated() {
    haft_io_simulation_options_t with_files{};
    with_files.files = true;
    check_seeds(use_files, 10, with_files);
}

int main() {
    RUN(files_are_simulated);
    return check_end();
}
