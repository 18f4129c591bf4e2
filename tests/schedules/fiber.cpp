#include "schedules/fiber.hpp"

#include <cstdint>
#include <cxxabi.h>
#include <utility>

#ifdef MAILROOM_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

namespace mailroom::test {
namespace {

constexpr std::size_t stack_size = 256 * 1024;

/// Announces a switch to another stack; a null `shadow` means that this stack is not used again.
void leave([[maybe_unused]] void** shadow, [[maybe_unused]] const void* to,
           [[maybe_unused]] std::size_t size) {
#ifdef MAILROOM_SANITIZED
  __sanitizer_start_switch_fiber(shadow, to, size);
#endif
}

void arrive([[maybe_unused]] void* shadow, [[maybe_unused]] const void** from,
            [[maybe_unused]] std::size_t* size) {
#ifdef MAILROOM_SANITIZED
  __sanitizer_finish_switch_fiber(shadow, from, size);
#endif
}

}  // namespace

Fiber::Fiber(std::function<void()> work) : work_(std::move(work)), stack_(new char[stack_size]) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_size;
  // makecontext passes only int arguments.
  const auto self = std::uint64_t{reinterpret_cast<std::uintptr_t>(this)};
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self & 0xffffffffU));
}

void Fiber::enter(unsigned int high, unsigned int low) {
  const auto self = static_cast<std::uintptr_t>((std::uint64_t{high} << 32) | low);
  reinterpret_cast<Fiber*>(self)->work_and_end();
}

void Fiber::work_and_end() {
  arrive(nullptr, &owner_stack_, &owner_stack_size_);
  try {
    work_();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  ended_ = true;
  leave(nullptr, owner_stack_, owner_stack_size_);
  setcontext(&owner_);
}

void Fiber::resume() {
  swap_exceptions();
  leave(&owner_shadow_, stack_.get(), stack_size);
  swapcontext(&owner_, &own_);
  arrive(owner_shadow_, nullptr, nullptr);
  swap_exceptions();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Fiber::give_way() {
  leave(&own_shadow_, owner_stack_, owner_stack_size_);
  swapcontext(&own_, &owner_);
  arrive(own_shadow_, &owner_stack_, &owner_stack_size_);
}

void Fiber::swap_exceptions() {
  auto* current = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(*current, exceptions_);
}

}  // namespace mailroom::test
