#pragma once

#include <optional>
#include <string>

#include "feed/event.hpp"

namespace mailroom {

/// Events as lines for people: time, what it happened to, what happened, and details.
class EventLines {
 public:
  struct Layout {
    std::string queue;                   ///< which needs no mention
    std::optional<std::size_t> columns;  ///< of the terminal; nothing is cut without
    bool colour = false;
  };
  explicit EventLines(Layout layout) : layout_(std::move(layout)) {}

  std::string render(const Event& event);

 private:
  std::string word_in_colour(const Event& event, std::size_t width) const;
  std::string details(const Event& event, std::optional<std::size_t> room) const;

  Layout layout_;
  std::size_t subject_width_ = 10;  ///< grows with the ids
};

/// One object in a line.
std::string render_json(const Event& event);

}  // namespace mailroom
