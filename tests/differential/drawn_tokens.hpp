#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "differential/queue_world.hpp"

namespace mailroom::test {

/// What is known of the tokens of a play before it is played.
class DrawnTokens {
 public:
  struct Token {
    std::int64_t id;
    std::optional<int> expires;  ///< after this unit
    bool is_consumed;
  };

  std::int64_t draw(int writer) {
    open_[writer].push_back(++last_id_);
    return last_id_;
  }
  bool is_open(int writer) { return !open_[writer].empty(); }
  void commit(int writer, std::optional<int> lifetime) {
    std::optional<int> expires;
    if (lifetime) expires = now_ + *lifetime;
    for (const auto id : std::exchange(open_[writer], {}))
      tokens_.push_back({id, expires, false});
  }
  void roll_back(int writer) { open_[writer].clear(); }
  /// Of these tokens nothing more will be known.
  void skip(int count) { last_id_ += count; }
  void pass(int units) { now_ += units; }

  std::int64_t last_id() const { return last_id_; }
  std::vector<Token>& committed() { return tokens_; }
  Ids due() const {
    Ids due;
    for (const auto& token : tokens_) {
      if (!token.is_consumed && (!token.expires || now_ <= *token.expires)) due.push_back(token.id);
    }
    return due;
  }

 private:
  std::map<int, Ids> open_;  ///< by writer
  std::vector<Token> tokens_;
  std::int64_t last_id_ = 0;
  int now_ = 0;
};

}  // namespace mailroom::test
