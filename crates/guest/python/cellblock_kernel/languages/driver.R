# Runs cells of R for the kernel. A request is a line on a pipe of its own, the code is in a file that both have open,
# and an answer is a line whose fields are encoded as in URLs. What cells bind stays in the global environment.
local({
  descriptor <- function(number) paste0("/dev/fd/", number)
  given <- commandArgs(TRUE)
  requests <- file(descriptor(given[[1]]), "r", raw = TRUE)
  answers <- file(descriptor(given[[2]]), "w", raw = TRUE)
  seen <- file(descriptor(given[[3]]), "r", raw = TRUE)
  code <- descriptor(given[[4]])
  pictures <- tempfile("plots")
  dir.create(pictures)
  # Calls of a traceback, and characters of each field.
  most_calls <- 30
  longest <- 10000

  tell <- function(...) {
    fields <- vapply(list(...), function(field) utils::URLencode(substr(field, 1, longest), reserved = TRUE), "")
    writeLines(paste(fields, collapse = "\t"), answers)
    flush(answers)
  }

  options(
    warn = 1,
    device = function(...) {
      grDevices::png(file.path(pictures, "%06d.png"), width = 1200, height = 900, res = 150, type = "cairo")
    }
  )

  # Shows what was drawn, and waits until it has been sent: what comes afterwards is shown after it.
  show_pictures <- function() {
    grDevices::graphics.off()
    for (path in list.files(pictures, full.names = TRUE)) {
      tell("picture", path)
      readLines(seen, 1)
      unlink(path)
    }
  }

  show_value <- function(value) if (isS4(value)) methods::show(value) else print(value)

  one_line <- function(call) deparse(call, nlines = 1)[[1]]
  # How a cell's expression is evaluated, which no message shows.
  ours <- "eval(parsed[[number]], globalenv())"

  # The calls between the cell's own and those that handle the error.
  traceback_of <- function(calls) {
    lines <- vapply(utils::head(calls, -2), one_line, "")
    lines <- lines[seq_along(lines) > max(0, which(lines == ours))]
    paste(utils::tail(lines, most_calls), collapse = "\n")
  }

  evaluate <- function(name, echo) {
    lines <- readLines(code, warn = FALSE, encoding = "UTF-8")
    line <- 1L
    calls <- list()
    fail <- function(error, kind) {
      call <- conditionCall(error)
      where <- if (is.null(call) || kind == "ParseError") "" else one_line(call)
      if (where == ours) where <- ""
      tell("error", kind, conditionMessage(error), as.character(line), where, traceback_of(calls))
    }
    parsed <- tryCatch(parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(name, lines)), error = function(error) {
      place <- regmatches(conditionMessage(error), regexec(":([0-9]+):[0-9]+:", conditionMessage(error)))[[1]]
      if (length(place) == 2) line <<- as.integer(place[[2]])
      fail(error, "ParseError")
      NULL
    })
    if (is.null(parsed)) return(invisible())
    places <- attr(parsed, "srcref")
    tryCatch(
      {
        for (number in seq_along(parsed)) {
          line <- places[[number]][[1]]
          shown <- withCallingHandlers(
            withVisible(eval(parsed[[number]], globalenv())),
            error = function(error) calls <<- sys.calls()
          )
          if (echo && shown$visible) show_value(shown$value)
        }
        TRUE
      },
      error = function(error) fail(error, class(error)[[1]])
    )
  }

  repeat {
    # An interrupt may come when the cell has just ended.
    tryCatch(
      {
        request <- readLines(requests, 1)
        if (length(request) == 0) quit("no")
        fields <- strsplit(request, " ", fixed = TRUE)[[1]]
        evaluate(fields[[2]], fields[[1]] == "1")
        show_pictures()
        tell("done")
      },
      interrupt = function(condition) {
        grDevices::graphics.off()
        unlink(list.files(pictures, full.names = TRUE))
        tell("done")
      }
    )
  }
})
