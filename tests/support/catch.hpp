#pragma once

// Catch2 3 and Catch2 2 differ in where their headers are, and in the namespace of Approx.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>

using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
