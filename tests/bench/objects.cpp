// SPDX-License-Identifier: MIT
//
// Containers as C++ programs use them: maps of strings, vectors that grow, lists, shared
// pointers, with operator new and sized delete below. gh-bench-objects [THREADS [PERCENT]]
#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

struct document {
    std::string title;
    std::vector<std::string> words;
    std::shared_ptr<document> parent;
};

std::uint64_t next(std::uint64_t &state) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

std::string word(std::uint64_t &state) {
    return std::string(3 + next(state) % 40, static_cast<char>('a' + next(state) % 26));
}

std::size_t work(unsigned number, unsigned rounds) {
    std::uint64_t state = number + 1;
    std::map<std::string, std::shared_ptr<document>> by_title;
    std::unordered_map<std::uint64_t, std::list<std::string>> index;
    std::size_t sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        auto made = std::make_shared<document>();
        made->title = word(state) + std::to_string(next(state) % 20000);
        for (unsigned i = 0, count = 4 + next(state) % 24; i < count; i++)
            made->words.push_back(word(state));
        if (!by_title.empty()) {
            auto near = by_title.lower_bound(made->title);
            if (near != by_title.end() && !near->second->parent)
                made->parent = near->second;
        }
        auto &entry = index[next(state) % 4096];
        entry.push_back(made->words.front());
        if (entry.size() > 6)
            entry.pop_front();
        by_title[made->title] = made;
        if (by_title.size() > 8000) {
            auto victim = by_title.lower_bound(word(state));
            by_title.erase(victim == by_title.end() ? by_title.begin() : victim);
        }
        std::map<int, std::string> local; // a scratch table for each round
        for (int i = 0; i < 12; i++)
            local[static_cast<int>(next(state) % 100)] = made->words.back() + made->title;
        sum += local.size();
    }
    return sum;
}

} // namespace

int main(int count, char **words) {
    unsigned threads = count > 1 ? static_cast<unsigned>(std::atoi(words[1])) : 1;
    unsigned percent = count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 100;
    unsigned rounds = 200000 / 100 * percent;
    if (threads == 1)
        return work(0, rounds) == 0;
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; i++)
        all.emplace_back([i, rounds] { work(i, rounds); });
    for (auto &thread : all)
        thread.join();
    return 0;
}
