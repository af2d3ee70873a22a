"""Media types in capitals."""

from django.core.handlers.wsgi import WSGIRequest

from agentcms.middleware.wsgi_media_types import lower_media_types

FORM = b'--X,Y\r\nContent-Disposition: form-data; name="a"\r\n\r\ntext\r\n--X,Y--\r\n'


def test_media_types_are_read_in_lower_case_and_boundaries_as_sent(rf):
    requests = []
    environ = rf.generic("POST", "/", FORM, content_type='Multipart/Form-Data; boundary="X,Y"').environ
    environ |= {"HTTP_ACCEPT": "Application/JSON"}

    lower_media_types(lambda environ, start: requests.append(WSGIRequest(environ)) or [])(environ, lambda *args: None)

    assert [(request.POST.dict(), request.META["HTTP_ACCEPT"]) for request in requests] == [
        ({"a": "text"}, "application/json")
    ]
