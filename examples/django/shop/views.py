"""The pages of the shop: sign up, confirm, sign in, order."""

from django.contrib.auth import login
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import F
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.utils import timezone
from django.utils.html import format_html
from django.views import View

from shop import links
from shop.models import Item, Order, User

# Whether an address has an account or not, the answer is the same.
LOOK = 'Thank you. Please look into your mailbox.'


class Page(View):
    """A form. A link shows its button and changes nothing: mail scanners open links too."""

    fields = []
    button = 'Go on'

    def get(self, request):
        inputs = [format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', get_token(request)),
                  format_html('<input type="hidden" name="token" value="{}">', request.GET.get('token', ''))]
        inputs += [format_html('<input name="{}">', name) for name in self.fields]
        response = HttpResponse('<form method="post">' + ''.join(inputs) + f'<button>{self.button}</button></form>')
        response['Cache-Control'] = 'no-store'
        response['Referrer-Policy'] = 'no-referrer'
        return response


class SignUp(Page):
    fields = ['name', 'email']

    def post(self, request):
        email, name = request.POST['email'], request.POST['name']
        try:
            validate_email(email)
        except ValidationError:
            return HttpResponse('This cannot be right.', status=400)
        user, is_new = User.objects.get_or_create(email=email, defaults={'username': email, 'first_name': name})
        if is_new:
            links.send_link('confirm', user)
        return HttpResponse(LOOK)


class Confirm(Page):
    button = 'Confirm my address'

    def post(self, request):
        user = links.redeem('confirm', request.POST['token'])
        if user is None:
            return HttpResponse('This link is not valid any more.', status=400)
        User.objects.filter(pk=user).update(confirmed_at=timezone.now())
        return HttpResponse('Your address is confirmed.')


class SignIn(Page):
    fields = ['email']

    def post(self, request):
        for user in User.objects.filter(email=request.POST['email'], confirmed_at__isnull=False):
            links.send_link('magic_link', user)
        return HttpResponse(LOOK)


class MagicLink(Page):
    button = 'Sign in'

    def post(self, request):
        user = links.redeem('magic_link', request.POST['token'])
        if user is None:
            return HttpResponse('This link is not valid any more.', status=400)
        login(request, User.objects.get(pk=user))
        return HttpResponse('You are signed in.')


class Orders(Page):
    fields = ['item']

    def post(self, request):
        if not request.user.is_authenticated:
            return HttpResponse('Please sign in.', status=400)
        try:
            with transaction.atomic():
                item = Item.objects.get(pk=request.POST['item'])
                order = Order.objects.create(user=request.user, item=item)
                links.send(('template', 'receipt'), request.user, f'order:{order.pk}', item=item.name, price=str(item.price))
                # If it is sold out, this fails, and the receipt is never sent.
                Item.objects.filter(pk=item.pk).update(stock=F('stock') - 1)
        except (Item.DoesNotExist, IntegrityError):
            return HttpResponse('This cannot be right.', status=400)
        return HttpResponse(f'Thank you for your order {order.pk}.')
