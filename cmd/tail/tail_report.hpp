// The output of tail: each event as a line of text or of JSON.
#pragma once

#include <optional>
#include <string>

#include "feed/event.hpp"

namespace mailroom::cmd {

/// Renders events as lines of text: time, subject, kind and details.
class EventLines {
 public:
  struct Layout {
    std::string queue;                   ///< the queue that lines do not name; empty if they name each
    std::optional<std::size_t> columns;  ///< of the terminal; nullopt cuts nothing
    bool colour = false;
  };
  explicit EventLines(Layout layout) : layout_(std::move(layout)) {}

  std::string render(const feed::Event& event);

 private:
  Layout layout_;
  std::size_t subject_width_ = 10;  ///< grows with the ids
};

/// Returns the event as a JSON object on one line.
std::string render_json(const feed::Event& event);

}  // namespace mailroom::cmd
