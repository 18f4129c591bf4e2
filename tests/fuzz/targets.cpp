// The fuzz targets in one executable: each by itself took five seconds to compile and link.

#include <map>

#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz {
namespace {

using Targets = std::map<std::string_view, Target::Run>;

/// Made by the first target: the order in which they are made is not known.
Targets& targets() {
  static Targets all;
  return all;
}

Target::Run chosen = nullptr;

}  // namespace

Target::Target(const char* name, Run run) {
  targets().emplace(name, run);
}

}  // namespace mailroom::fuzz

/// Takes the target's name from the arguments: libFuzzer would read inputs from a file of this name.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace mailroom::fuzz;
  const auto found = *argc > 1 ? targets().find((*argv)[1]) : targets().end();
  if (found == targets().end()) {
    std::fprintf(stderr,
                 "fuzz_targets: no target is named\nhint: fuzz_targets TARGET [ARG...]; TARGET is one of:");
    for (const auto& target : targets())
      std::fprintf(stderr, " %s", std::string(target.first).c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  chosen = found->second;
  (*argv)[1] = (*argv)[0];
  ++*argv;
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return mailroom::fuzz::chosen(data, size);
}
