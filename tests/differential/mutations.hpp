#pragma once

#include <string>
#include <vector>

#include "support/fake_queue.hpp"

namespace mailroom::test {

/// A fake queue that is wrong in one way.
struct Mutation {
  std::string name;
  MakeFakeQueue make;
};

const std::vector<Mutation>& mutations();

}  // namespace mailroom::test
