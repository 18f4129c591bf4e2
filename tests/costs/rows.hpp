#pragma once

#include <vector>

#include "carriers/line_sink.hpp"
#include "consumer/batch_signer.hpp"
#include "support/actions.hpp"
#include "support/batch_rows.hpp"

namespace mailroom::test {

/// The rows of a batch of `count` due tokens; half of the addresses need quotes.
class DueRows {
 public:
  explicit DueRows(int count) : count_(count) {}

  void operator()(const std::function<void(const claim::TokenRow&)>& each) const {
    for (int id = 1; id <= count_; ++id) {
      auto row = id % 2 == 0 ? row_of(id, activation_action(), "somebody@mail.example", "somebody")
                             : row_of(id, recovery_action(), "some,body@mail.example", "some\"body");
      row.secret.emplace().fill(static_cast<std::uint8_t>(id));
      each(row);
    }
  }

 private:
  int count_;
};

}  // namespace mailroom::test
